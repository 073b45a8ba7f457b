"""Listening tests for their owner: making one, its links, how far everybody is, and what came of it."""

import json
from urllib.parse import quote, urlsplit

import pandas as pd
import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.libraries import default_folder
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.listening_tests.frozen import read_test
from musicsim.extensions.listening_tests.pooling import make_test
from musicsim.extensions.listening_tests.request import MAX_MODELS, ListeningTestRequest
from musicsim.extensions.listening_tests.results import Results, grades_csv, results_json, results_of
from musicsim.extensions.listening_tests.store import (
    CATEGORIES,
    MAX_LISTENERS,
    InvitedListener,
    KeptTest,
    ListeningTestStore,
)
from musicsim.extensions.listening_tests.taking_part import import_grades
from musicsim.library import Library
from musicsim.ui.base.keys import Key
from musicsim.ui.base.option_widgets import labelled, limits
from musicsim.ui.base.text import plain
from musicsim.ui.components.table_download import saved_table

_NUMBERS = ("queries", "results", "checks", "failed_checks", "seconds", "seed")
_CHOSEN: Key[int | None] = Key(
    "listening_test", lambda: None, "number of the listening test that is shown", per_library=True
)
_SAID: Key[str] = Key("listening_said", str, "what became of the last action", per_library=True)


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """The form for a new test, and the test that is chosen."""
    library = snapshot.library
    st.caption(
        "Several people hear the same pairs of songs, each by a link of their own and without names, and grade how "
        "similar they sound. So models are compared blind."
    )
    kept = ListeningTestStore(library).all()
    with st.expander("New listening test", expanded=not kept, icon=":material/add:"):
        _form(library)
    said = _SAID.get()
    if said:
        st.warning(plain(said), icon=":material/warning:")
        _SAID.set("")
    if not kept:
        return
    by_id = {test.id: test for test in kept}
    if _CHOSEN.get() not in by_id:
        _CHOSEN.set(kept[0].id)
    _CHOSEN.keep()
    chosen = st.selectbox("Test", list(by_id), key=_CHOSEN.name, format_func=lambda i: plain(by_id[i].name), width=420)
    _shown(library, by_id[chosen])


# --- a new test -----------------------------------------------------------------------------------


def _form(library: Library) -> None:
    models = [record.name for record in library.models.all()]
    if len(models) < 2:
        st.info("A test compares at least two models: add songs, or train one.", icon=":material/info:")
        return
    active = library.models.active()
    first = [active.name] if active else []
    first += [name for name in models if name not in first][: 2 - len(first)]
    request = ListeningTestRequest
    with st.form("listening_new", border=False):
        name = st.text_input(**labelled(request, "name"), value=request.name, max_chars=100)
        chosen = st.multiselect(**labelled(request, "models"), options=models, default=first, max_selections=MAX_MODELS)
        numbers = {}
        for fields in (_NUMBERS[:3], _NUMBERS[3:]):
            for column, field in zip(st.columns(3), fields, strict=True):
                numbers[field] = int(column.number_input(**limits(request, field), value=getattr(request, field)))
        same_artist = st.checkbox(**labelled(request, "same_artist"), value=request.same_artist)
        consent = st.text_area(**labelled(request, "consent"), value=request.consent, max_chars=5_000)
        people = st.number_input("Listeners", 1, MAX_LISTENERS, 5, help="Each gets a link; more can be added later.")
        if st.form_submit_button("Make the test", type="primary", icon=":material/headphones:"):
            try:
                asked = request(name=name, models=tuple(chosen), same_artist=same_artist, consent=consent, **numbers)
                with st.spinner("Asking the models…"):
                    test = make_test(library, asked)
            except (MusicsimError, ValueError) as error:
                st.error(plain(error), icon=":material/error:")
                return
            _keep(library, test.name, test.digest, test.to_json(), int(people))
            st.rerun()
    file = st.file_uploader("Or repeat a test from its file", ["json"], key="listening_file")
    if file is not None and st.button("Use this file", key="listening_use", icon=":material/upload_file:"):
        try:
            test = read_test(file.getvalue(), file.name)
        except MusicsimError as error:
            st.error(plain(error), icon=":material/error:")
            return
        n_absent = sum(library.song_with_sound(s.content_hash, s.sound_hash) is None for s in test.songs)
        if n_absent:
            st.error(f"{n_absent:,} of its {len(test.songs):,} songs are not in this library.", icon=":material/error:")
            return
        _keep(library, test.name, test.digest, test.to_json(), 5)
        st.rerun()


def _keep(library: Library, name: str, digest: str, document: str, people: int) -> None:
    tests = ListeningTestStore(library)
    number = tests.add(name, digest, document)
    if not tests.listeners(number):
        _invite(library, number, people)
    _CHOSEN.set(number)


def _invite(library: Library, test_id: int, n: int) -> None:
    known = len(ListeningTestStore(library).listeners(test_id))
    try:
        ListeningTestStore(library).invite(test_id, [f"Listener {known + i + 1}" for i in range(n)])
    except ValueError as error:
        _SAID.set(str(error))


# --- the one that is shown ------------------------------------------------------------------------


@st.fragment
def _shown(library: Library, kept: KeptTest) -> None:
    try:
        found = results_of(library, kept.id)
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")
        return
    left, right = st.columns([1, 1], gap="large")
    with left:
        _people(library, kept, found)
    with right:
        _verdict(found)
    _files(library, kept)


def _people(library: Library, kept: KeptTest, found: Results) -> None:
    st.subheader("Listeners", anchor=False)
    n_counted = sum(one.counts for one in found.progress)
    st.caption(f"{n_counted} of {len(found.progress)} have finished and passed the attention checks.")
    for one in found.progress:
        share = one.n_graded / one.n_pairs
        failed = f", {one.n_failed_checks} checks failed" if one.n_failed_checks else ""
        left_out = "" if one.counts or share < 1 else " (does not count)"
        st.progress(share, text=f"**{plain(one.listener.name)}**: {one.n_graded} of {one.n_pairs}{failed}{left_out}")
    with st.expander("Links", icon=":material/link:", expanded=not n_counted):
        st.caption("Send each link to one person. Who has it grades under this name, and sees nothing else.")
        if urlsplit(st.context.url or "").hostname in ("localhost", "127.0.0.1", "::1"):
            st.caption(
                ":material/info: Others cannot reach this machine at this address: start the app with --host, or, for "
                "strangers, as a public demonstration with --keep-answers (docs/listening_tests.md)."
            )
        links = [f"{one.listener.name}: {_link(library, one.listener)}" for one in found.progress]
        st.code("\n".join(links), language=None, wrap_lines=True)
        st.button(
            "One more listener", icon=":material/person_add:", key="listening_more", on_click=_invite,
            args=(library, kept.id, 1),
        )  # fmt: skip
    st.button("Look again", icon=":material/refresh:", key="listening_again", type="tertiary")


def _link(library: Library, listener: InvitedListener) -> str:
    """The address of a listener's page, below that of this one."""
    base = (st.context.url or "").split("?")[0].rstrip("/").removesuffix("/compare")
    other = "" if library.folder == default_folder() else f"?library={quote(library.name)}"
    return f"{base}/listen/{listener.token}{other}"


def _verdict(found: Results) -> None:
    st.subheader("Which model is better", anchor=False)
    if not found.pairs:
        st.info("Nothing to say before a listener has finished.", icon=":material/hourglass_empty:")
        return
    for pair in found.pairs:
        show = st.success if pair.is_sure else st.info
        show(plain(pair.words), icon=":material/trophy:" if pair.is_sure else ":material/balance:")
    assert found.ranks is not None
    table = {
        "Model": [model.name for model in found.models],
        "Mean fine score": [f"{model.mean_fine:.1f}" for model in found.models],
        "Mean rank": [f"{rank:.2f}" for rank in found.ranks.mean_ranks],
    }
    for place, category in enumerate(CATEGORIES):
        table[category.capitalize()] = [f"{model.shares[place]:.0%}" for model in found.models]
    saved_table(pd.DataFrame(table), name="listening test", key="listening_models")
    st.markdown(
        f"- {found.n_queries} query songs; Friedman's test: p = {found.ranks.p_value:.3f}\n"
        f"- Listeners agree (Krippendorff's alpha: 1 is all, 0 is chance) in categories by "
        f"{_agreement(found, 'by_category')}, in fine scores by {_agreement(found, 'by_fine')}"
    )
    st.caption(
        "A difference is sure where Tukey's test on ranks within each query song says so at 5 %, and the interval does "
        "not hold 0. Decide beforehand how many listeners will finish: looking until a difference shows finds one "
        "where there is none."
    )


def _agreement(found: Results, of: str) -> str:
    agreed = getattr(found, of)
    if agreed.alpha != agreed.alpha:
        return "– (it takes two who have finished)"
    return f"{agreed.alpha:.2f} (95% interval {agreed.low:.2f} to {agreed.high:.2f})"


def _files(library: Library, kept: KeptTest) -> None:
    name = "".join(c if c.isalnum() else "_" for c in kept.name)
    with st.container(horizontal=True):
        for label, ending, kind, content in (
            ("Grades (CSV)", "csv", "text/csv", lambda: grades_csv(library, kept.id)),
            ("Results (JSON)", "results.json", "application/json", lambda: results_json(library, kept.id)),
            (
                "The test (JSON)",
                "test.json",
                "application/json",
                lambda: json.dumps(json.loads(kept.document), indent=1),
            ),
        ):
            st.download_button(
                label, content, f"{name}.{ending}", kind, key=f"listening_{ending}", icon=":material/download:",
                on_click="ignore",
            )  # fmt: skip
        with st.popover("Import answers", icon=":material/upload:"):
            st.caption("Files that a public demonstration kept by --keep-answers.")
            files = st.file_uploader("Answers", ["json"], accept_multiple_files=True, key="listening_answers")
            if st.button("Import", key="listening_import", disabled=not files):
                _SAID.set(_imported(library, [(file.getvalue(), file.name) for file in files]))
                st.rerun()
        with st.popover("Delete", icon=":material/delete:"):
            st.markdown(f"Delete **{plain(kept.name)}** with its links and all grades? This can't be undone.")
            if st.button("Delete it", key="listening_delete", icon=":material/delete:"):
                ListeningTestStore(library).delete(kept.id)
                st.rerun()


def _imported(library: Library, files: list[tuple[bytes, str]]) -> str:
    wrong = []
    for content, name in files:
        try:
            import_grades(library, content, name)
        except MusicsimError as error:
            wrong.append(str(error))
    return " ".join(wrong)
