"""A small CLAP pair, whose vectors are known in closed form, and its tokenizer."""

import librosa
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

N_BANDS, RATE, WINDOW = 64, 48_000, 480_000
TEXTS = ("calm piano", "loud drums", "a slow organ", "bright noise")
_OPSET, _IR = 17, 8


def write_audio(path, shape=("n", "channels", "height", "width")):
    """Write a network that returns the mean of each band, less 60 dB below full scale."""
    nodes = [
        helper.make_node("ReduceMean", ["input_features"], ["mean"], axes=[1, 2], keepdims=0),
        helper.make_node("Add", ["mean", "level"], ["audio_embeds"]),
        helper.make_node("Identity", ["mean"], ["last_hidden_state"]),
    ]
    constants = [numpy_helper.from_array(np.array([60], np.float32), "level")]
    inputs = [helper.make_tensor_value_info("input_features", TensorProto.FLOAT, shape)]
    return _save(path, nodes, inputs, ["last_hidden_state", "audio_embeds"], constants)


def write_tokenizer(path):
    """Train a tokenizer like that of RoBERTa, and return it."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers  # other tests do not need it

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.save(str(path))
    return tokenizer


def write_text(path, width=N_BANDS, length="tokens", names=("input_ids", "attention_mask")):
    """Write a network that averages rows of a table over the tokens; return the table."""
    table = np.random.default_rng(1).standard_normal((400, width)).astype(np.float32)
    ids, mask = names
    nodes = [
        helper.make_node("Gather", ["table", ids], ["rows"]),
        helper.make_node("Cast", [mask], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["rows", "column"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "tokens"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["column", "tokens"], ["count"], keepdims=0),
        helper.make_node("Div", ["sum", "count"], ["text_embeds"]),
    ]
    constants = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array([2]), "last"),
        numpy_helper.from_array(np.array([1]), "tokens"),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", length]) for name in names]
    _save(path, nodes, inputs, ["text_embeds"], constants)
    return table


def _save(path, nodes, inputs, outputs, constants):
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "pair", inputs, made, constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR), path)
    return path


def write_pair(folder, **text):
    """Write a pair; return the paths of its three files."""
    folder.mkdir(exist_ok=True)
    paths = folder / "clap.onnx", folder / "words.onnx", folder / "tokenizer.json"
    write_audio(paths[0])
    write_text(paths[1], **text)
    write_tokenizer(paths[2])
    return paths


def clap_input(samples):
    """Return the spectrogram of ten seconds at 48 kHz as transformers' ClapFeatureExtractor defines it, by librosa."""
    power = librosa.feature.melspectrogram(
        y=samples, sr=RATE, n_fft=1024, hop_length=480, n_mels=64, fmin=50, fmax=14_000, pad_mode="reflect"
    )
    return librosa.power_to_db(power, top_db=None).T


def repeat_and_pad(samples):
    """Repeat a short sound as often as it fits into ten seconds, and pad it with silence."""
    whole = np.tile(samples, WINDOW // len(samples))
    return np.pad(whole, (0, WINDOW - len(whole)))
