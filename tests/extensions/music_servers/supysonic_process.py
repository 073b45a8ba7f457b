"""A Subsonic server over a folder of music.

Run ``python -m tests.extensions.music_servers.supysonic_process STATE MUSIC PORT``; port 0 is a free one. It prints its
port, and scans the folder again for every line of input. Users: anna (an administrator) and ben, with their passwords
in PASSWORDS.
"""

import sys
from pathlib import Path

PASSWORDS = {"anna": "red apple", "ben": "blue pear"}


def _scan() -> None:
    from supysonic.scanner import Scanner

    scanner = Scanner()
    scanner.queue_folder("music")
    scanner.run()


def main(state: Path, music: Path, port: int) -> None:
    """Serve until the process is killed."""
    from supysonic import db, web
    from supysonic.config import DefaultConfig
    from supysonic.managers.folder import FolderManager
    from supysonic.managers.user import UserManager
    from werkzeug.serving import make_server

    class Config(DefaultConfig):
        BASE = DefaultConfig.BASE | {"database_uri": f"sqlite:///{state / 'supysonic.db'}"}
        WEBAPP = DefaultConfig.WEBAPP | {"cache_dir": str(state), "mount_webui": False}
        DAEMON = DefaultConfig.DAEMON | {"socket": str(state / "daemon.sock")}

    app = web.create_application(Config)
    with app.app_context():
        db.open_connection()
        for name, password in PASSWORDS.items():
            UserManager.add(name, password, admin=name == "anna")
        FolderManager.add("music", str(music))
        _scan()
        db.close_connection()
    server = make_server("127.0.0.1", port, app, threaded=True)
    print(server.port, flush=True)  # noqa: T201
    import threading

    threading.Thread(target=server.serve_forever, daemon=True).start()
    for _ in sys.stdin:
        with app.app_context():
            db.open_connection()
            _scan()
            db.close_connection()
        print("scanned", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
