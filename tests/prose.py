"""Check the English of texts, docstrings, comments and documents: forbidden words, odd phrases, long sentences.

``python -m tests.prose`` prints every finding as ``file:line: reason: sentence``. The exit code is 1 if there is one.
The forbidden words are the bold ones in the last column of docs/glossary.md.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
SOURCES = ("musicsim", "tests", "benchmarks", "experiments", "torture", "pages", "beetsplug")
GLOSSARY = CHECKOUT / "docs" / "glossary.md"
# Quoted by other documents as examples to avoid, or generated.
UNCHECKED = {GLOSSARY, CHECKOUT / "docs" / "project" / "licences.md"}
MAX_WORDS = 30
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
START = r"(?:^|[.;:] )"
PHRASES = {
    "starts with a question word but asks nothing": rf"{START}(?:What|Who|Whose|Where|Which)\b(?!ever)[^?]*$",
    "write 'is not a' or 'has nothing'": (
        r"(?<![Tt]here )\b(?:is|are|was|were|knows?) (?:no|none)\b(?! longer| more|body| of\b| better\b)"
    ),
    "write 'except' or 'only'": r"\b(?:but for|nothing but|none but|all but)\b",
    "write 'per'": r"\d (?:MB|GB|kB|ms|µs|s|minutes|bytes) an? (?:song|query|row|page|file|artist|cut|list|step)\b",
    "say who does it": r"\b(?:is|are|was|were|be|been) (?:told|said|spoken)\b",
    "use a plain word": (
        r"\b(?:[Bb]eside|thereby|thereof|wherein|hitherto|henceforth|anew|lest|foresees?|foretells?|likeness|"
        r"gives? back|of use|once more|for certain|at the earliest|so many others)\b"
    ),
    "start with the subject": r"(?:^|[.;] )(?:Of|Among|Behind|Under) [^,.;:?]{3,60}? (?:is|are|comes?) (?:the|an?) ",
}
# SQL, markup, templates and names are not sentences
CODE = re.compile(r"\b(?:SELECT|INSERT|UPDATE|CREATE|DELETE|PRAGMA)\b|<\w+[ >]|[{}]|^[\w./:-]+$")
# "name : type", as in the sections of docstrings
DEFINITION = re.compile(r"^\s*[\w*, `]+ : .*$", re.M)
# code, equations and generated tables of documents
NO_PROSE = re.compile(r"```.*?```|<!-- results.*?<!-- end -->|\$\$.*?\$\$", re.S)
# the last lines of a command's docstring
EXAMPLES = re.compile(r"Examples:\n(?: +musicsim .*\n)+")
BREAKS = re.compile(
    r"("
    # the end of a sentence, not of an abbreviation
    r"(?<![ei]\.[ge]\.)(?<!etc\.)(?<!vs\.)(?<=[.!?])\s+(?=[A-Z“\"*(]|musicsim\b)"
    r"|\n\s*\n|\n\s*-{3,}\n"  # the end of a paragraph or of a heading
    r"|\n\s*(?=(?:[-*#|>]|\d+\.)\s)|\n\s*(?=>>>|\.\.\. )"  # an item of a list, a line of an example
    r"|\n(?=\0)|\0"  # around a definition
    r")"
)


def read_forbidden_words() -> list[str]:
    """Return the bold words in the last column of the glossary."""
    rows = (line.strip("|").split("|") for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line[:1] == "|")
    return [word for row in rows if len(row) == 3 for word in re.findall(r"\*\*(.+?)\*\*", row[2])]


def split_sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence with the number of lines before it; code and addresses become X."""
    text = re.sub(r"(`+).*?\1|\[([^\]]*)\]\([^)]*\)", lambda found: found[2] or "X", text, flags=re.S)
    text = DEFINITION.sub(r"\0\g<0>\0", text)
    start = 0
    for part in BREAKS.split(text):
        if len(part.split()) > 2:
            line = text.count("\n", 0, start + len(part) - len(part.lstrip()))
            yield line, " ".join(part.split())
        start += len(part)


def read_document(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and sentence of a Markdown file, without code, equations and generated tables."""
    text = path.read_text(encoding="utf-8")
    text = NO_PROSE.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|"):
            for cell in line.strip("|").split("|"):
                yield from ((number, sentence) for _, sentence in split_sentences(cell))
    prose = re.sub(r"^\|.*$", "", text, flags=re.M)
    yield from ((1 + before, sentence) for before, sentence in split_sentences(prose))


def read_source(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and sentence of the docstrings, comments and texts of a module."""
    source = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = set()
    for node in nodes:
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node):
            docstring = node.body[0].value  # type: ignore[attr-defined]
            docstrings.add(docstring)
            text = EXAMPLES.sub("", docstring.value)
            yield from ((docstring.lineno + before, sentence) for before, sentence in split_sentences(text))
    inside = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes if path.is_relative_to(CHECKOUT / "musicsim") else ():
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings | inside:
            text = node.value
        if text and not CODE.search(text):
            yield from ((node.lineno, sentence) for _, sentence in split_sentences(text))
    yield from (
        (line + before, sentence) for line, text in read_comments(source) for before, sentence in split_sentences(text)
    )


def read_comments(source: str) -> list[tuple[int, str]]:
    """Return the first line and the text of each comment; comments on consecutive lines of their own are one."""
    comments: list[tuple[int, str]] = []
    next_line = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, text, is_alone = token.start[0], token.string.lstrip("#! "), token.line.lstrip().startswith("#")
            if is_alone and line == next_line:
                line, text = comments[-1][0], f"{comments.pop()[1]}\n{text}"
            comments.append((line, text))
            next_line = token.start[0] + 1 if is_alone and not token.string.startswith("#:") else 0
    return comments


def find_faults(sentence: str, forbidden: re.Pattern[str]) -> Iterator[str]:
    """Yield what is wrong with a sentence."""
    yield from (f"the glossary has another word for '{found[0]}'" for found in forbidden.finditer(sentence))
    yield from (reason for reason, phrase in PHRASES.items() if re.search(phrase, sentence))
    n_words = len(sentence.split())
    if n_words > MAX_WORDS and 3 * sentence.count(",") < n_words:  # otherwise it is a list of words
        yield f"{n_words} words; the limit is {MAX_WORDS}"


def main() -> int:
    """Print the faults of all texts; return the exit code."""
    forbidden = re.compile(r"\b(?:" + "|".join(map(re.escape, read_forbidden_words())) + r")\b", re.I)
    documents = [*CHECKOUT.glob("*.md"), *sorted((CHECKOUT / "docs").rglob("*.md"))]
    modules = [path for folder in SOURCES for path in sorted((CHECKOUT / folder).rglob("*.py"))]
    count = 0
    for path in [*documents, *modules]:
        if path in UNCHECKED or path == Path(__file__):
            continue
        for line, sentence in (read_source if path.suffix == ".py" else read_document)(path):
            for fault in find_faults(sentence, forbidden):
                print(f"{path.relative_to(CHECKOUT)}:{line}: {fault}: {sentence[:160]}")
                count += 1
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main())
