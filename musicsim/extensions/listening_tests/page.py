"""The Listening tests section of the Research page, for the owner: create tests, share links, see results."""

import json
import math
from urllib.parse import quote, urlsplit

import pandas as pd
import streamlit as st

from musicsim import evaluation
from musicsim.errors import LibraryError, MusicsimError
from musicsim.explorer import Snapshot, default_folder
from musicsim.extensions.listening_tests import store
from musicsim.extensions.listening_tests.frozen import ListeningTest, read_test
from musicsim.extensions.listening_tests.pooling import ListeningTestRequest, make_test
from musicsim.extensions.listening_tests.results import TestResults, grades_csv, results_json, results_of
from musicsim.extensions.listening_tests.taking_part import import_grades
from musicsim.library import Library
from musicsim.ui.base import PAGES, Key, component, describe_option, download, off_if, option_limits, plain, show_errors
from musicsim.ui.components import show_table
from musicsim.wording import clean, count, count_are

_NUMBERS = ("queries", "results", "checks", "failed_checks", "seconds", "seed")
_CHOSEN: Key[int | None] = Key("listening_test", lambda: None, "id of the selected listening test", per_library=True)
_PROBLEM: Key[str] = Key("listening_said", str, "error message from the last action", per_library=True)


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the form for a new test, and the selected test."""
    library = snapshot.library
    st.caption(
        "Several people grade how similar the same pairs of songs sound. Each has a personal link and sees no names, "
        "so the comparison is blind."
    )
    tests = {test.id: test for test in store.ListeningTestStore(library).all()}
    if problem := _PROBLEM.get():
        st.warning(plain(problem), icon=":material/warning:")
        _PROBLEM.set("")
    if tests:
        if _CHOSEN.get() not in tests:
            _CHOSEN.set(next(iter(tests)))
        name = {test.id: plain(test.name) for test in tests.values()}
        chosen = st.selectbox("Test", list(tests), **_CHOSEN.widget(), format_func=name.__getitem__, width=420)
        _draw_test(library, tests[chosen])
    # the key changes with the number of tests, so that the form closes after a test is added
    with st.expander(
        "New listening test", expanded=not tests, key=f"listening_form_{len(tests)}", icon=":material/add:"
    ):
        _draw_form(library)
        with st.popover("Repeat a test from its file", icon=":material/upload_file:"):
            _draw_upload(library)


def _draw_form(library: Library) -> None:
    models = [record.name for record in library.models.all()]
    if len(models) < 2:
        st.info("A test needs at least two models. Add songs, or train a model.", icon=":material/info:")
        return
    active = library.models.active()
    first = [active.name] if active else []
    first += [name for name in models if name not in first][: 2 - len(first)]
    request = ListeningTestRequest
    with st.form("listening_new", border=False):
        name = st.text_input(**describe_option(request, "name"), value=request.name, max_chars=100)
        chosen = st.multiselect(
            **describe_option(request, "models"), options=models, default=first, max_selections=store.MAX_MODELS
        )
        people = st.number_input(
            "Listeners", 1, store.MAX_LISTENERS, 5, help="Each listener gets a link. You can add more later."
        )
        with st.popover("More", icon=":material/tune:"):
            numbers = {
                field: int(st.number_input(**option_limits(request, field), value=getattr(request, field)))
                for field in _NUMBERS
            }
            same_artist = st.checkbox(**describe_option(request, "same_artist"), value=request.same_artist)
            consent = st.text_area(**describe_option(request, "consent"), value=request.consent, max_chars=5_000)
        if st.form_submit_button("Create the test", type="primary", icon=":material/headphones:"):
            with show_errors(ValueError):
                options = request(name=name, models=tuple(chosen), same_artist=same_artist, consent=consent, **numbers)
                with st.spinner("Searching with each model…"):
                    test = make_test(library, options)
                _add(library, test, int(people))
                st.rerun()


def _draw_upload(library: Library) -> None:
    file = st.file_uploader("The test (JSON)", ["json"], key="listening_file")
    if file is not None and st.button("Use this file", key="listening_use", icon=":material/upload_file:"):
        with show_errors():
            test = read_test(file.getvalue(), file.name)
            n_absent = sum(library.song_with_sound(s.content_hash, s.sound_hash) is None for s in test.songs)
            if n_absent:
                raise LibraryError(f"{n_absent:,} of {count_are(len(test.songs), 'song')} not in this library.")
            _add(library, test, 5)
            st.rerun()


def _add(library: Library, test: ListeningTest, n_listeners: int) -> None:
    tests = store.ListeningTestStore(library)
    test_id = tests.add(test.name, test.digest, test.to_json())
    if not tests.listeners(test_id):
        _invite(library, test_id, n_listeners)
    _CHOSEN.set(test_id)


def _invite(library: Library, test_id: int, n: int) -> None:
    tests = store.ListeningTestStore(library)
    known = len(tests.listeners(test_id))
    try:
        tests.invite(test_id, [f"Listener {known + i + 1}" for i in range(n)])
    except ValueError as error:
        _PROBLEM.set(str(error))


@st.fragment
def _draw_test(library: Library, test: store.KeptTest) -> None:
    try:
        results = results_of(library, test.id)
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")
        return
    _draw_links(library, test, results)
    left, right = st.columns([1, 1], gap="large")
    with left:
        _draw_listeners(results)
    with right:
        _draw_results(results)
    _draw_files(library, test)


def _draw_links(library: Library, test: store.KeptTest, results: TestResults) -> None:
    """Show the links; collapse them once a listener has finished."""
    with st.expander("Links", icon=":material/link:", expanded=not any(one.counts for one in results.progress)):
        st.caption(
            "Send each link to one person. Anyone with the link can grade under this name, but cannot open other pages."
        )
        if urlsplit(st.context.url or "").hostname in ("localhost", "127.0.0.1", "::1"):
            st.caption(
                ":material/info: Other people cannot reach this machine at this address. Start the app with --host. "
                "To invite strangers, run a public demonstration with --keep-answers "
                "(docs/research/listening_tests.md)."
            )
        listeners = [one.listener for one in results.progress]
        links = [{"name": clean(one.name), "url": _link(library, one)} for one in listeners]
        component("extensions/listening_tests/assets/links.js")(
            key="listening_links", data={"links": links}, height="content"
        )
        st.button(
            "Add a listener", icon=":material/person_add:", key="listening_more", on_click=_invite,
            args=(library, test.id, 1),
        )  # fmt: skip


def _draw_listeners(results: TestResults) -> None:
    st.header("Listeners", anchor=False)
    n_counted = sum(one.counts for one in results.progress)
    listeners = count(len(results.progress), "listener")
    st.caption(f"Finished, and passed the attention checks: {n_counted} of {listeners}.")
    for one in results.progress:
        share = one.n_graded / one.n_pairs
        failed = f", {one.n_failed_checks} failed attention checks" if one.n_failed_checks else ""
        left_out = "" if one.counts or share < 1 else " (not counted)"
        st.progress(share, text=f"**{plain(one.listener.name)}**: {one.n_graded} of {one.n_pairs}{failed}{left_out}")
    st.button("Refresh", icon=":material/refresh:", key="listening_again", type="tertiary")


def _link(library: Library, listener: store.InvitedListener) -> str:
    app, _, page = (st.context.url or "").split("?")[0].rstrip("/").rpartition("/")
    base = app if page in PAGES else f"{app}/{page}"
    other = "" if library.folder == default_folder() else f"?library={quote(library.name)}"
    return f"{base}/listen/{listener.token}{other}"


def _draw_results(results: TestResults) -> None:
    st.header("Which model is better?", anchor=False)
    if not results.pairs:
        st.info("Results will appear once a listener has finished.", icon=":material/hourglass_empty:")
        return
    for pair in results.pairs:
        show = st.success if pair.is_sure else st.info
        show(plain(pair.summary), icon=":material/trophy:" if pair.is_sure else ":material/balance:")
    assert results.ranks is not None
    table = {
        "Model": [model.name for model in results.models],
        "Mean fine score": [f"{model.mean_fine:.1f}" for model in results.models],
        "Mean rank": [f"{rank:.2f}" for rank in results.ranks.mean_ranks],
    }
    for i, category in enumerate(store.CATEGORIES):
        table[category.capitalize()] = [f"{model.shares[i]:.0%}" for model in results.models]
    show_table(pd.DataFrame(table), name="listening test", key="listening_models")
    st.markdown(
        f"- {results.n_queries} query songs; Friedman's test: p = {results.ranks.p_value:.3f}\n"
        f"- Agreement (Krippendorff's alpha; 1 = perfect, 0 = chance): categories "
        f"{_format_agreement(results.by_category)}, fine scores {_format_agreement(results.by_fine)}"
    )
    st.caption(
        "A difference is significant if Tukey's test on ranks within each query song finds it at the 5% level and "
        "the interval excludes 0. Fix the number of listeners in advance: testing until a difference appears gives "
        "false positives."
    )


def _format_agreement(agreement: evaluation.Agreement) -> str:
    if math.isnan(agreement.alpha):
        return "– (needs two listeners who have finished)"
    return f"{agreement.alpha:.2f} (95% interval {agreement.low:.2f} to {agreement.high:.2f})"


def _draw_files(library: Library, test: store.KeptTest) -> None:
    name = "".join(c if c.isalnum() else "_" for c in test.name)
    with st.container(horizontal=True):
        for label, ending, content in (
            ("Grades (CSV)", "csv", lambda: grades_csv(library, test.id)),
            ("Results (JSON)", "results.json", lambda: results_json(library, test.id)),
            ("The test (JSON)", "test.json", lambda: json.dumps(json.loads(test.document), indent=1)),
        ):
            mime = "text/csv" if ending == "csv" else "application/json"
            download(label, content, f"{name}.{ending}", mime, key=f"listening_{ending}")
        with st.popover("Import answers", icon=":material/upload:"):
            st.caption("Files that a public demonstration saved with --keep-answers.")
            files = st.file_uploader("Answers", ["json"], accept_multiple_files=True, key="listening_answers")
            if st.button("Import", key="listening_import", **off_if(not files, "Choose a file first.")):
                _PROBLEM.set(_import_all(library, [(file.getvalue(), file.name) for file in files]))
                st.rerun()
        with st.popover("Delete", icon=":material/delete:"):
            st.markdown(f"Delete **{plain(test.name)}** with its links and all grades? This can't be undone.")
            if st.button("Delete it", key="listening_delete", icon=":material/delete:"):
                store.ListeningTestStore(library).delete(test.id)
                st.rerun()


def _import_all(library: Library, files: list[tuple[bytes, str]]) -> str:
    problems = []
    for content, name in files:
        try:
            import_grades(library, content, name)
        except MusicsimError as error:
            problems.append(str(error))
    return " ".join(problems)
