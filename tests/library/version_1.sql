CREATE TABLE meta (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
);
CREATE TABLE roots (
    path TEXT NOT NULL,
    added_at FLOAT NOT NULL,
    PRIMARY KEY (path)
);
CREATE TABLE songs (
    id INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    title TEXT NOT NULL,
    artist TEXT,
    album_artist TEXT,
    album TEXT,
    track INTEGER,
    year INTEGER,
    genre TEXT,
    duration_s FLOAT NOT NULL,
    notes TEXT NOT NULL,
    outline BLOB NOT NULL,
    feature_version INTEGER NOT NULL,
    added_at FLOAT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (content_hash)
);
CREATE TABLE failures (
    path TEXT NOT NULL,
    reason TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    failed_at FLOAT NOT NULL,
    PRIMARY KEY (path)
);
CREATE TABLE playlists (
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    category TEXT,
    source TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (source, name, category)
);
CREATE TABLE models (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    n_songs_fitted INTEGER NOT NULL,
    n_codewords INTEGER NOT NULL,
    n_dimensions INTEGER NOT NULL,
    is_active BOOLEAN NOT NULL,
    is_complete BOOLEAN NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE jobs (
    id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    arguments JSON NOT NULL,
    state TEXT NOT NULL,
    message TEXT NOT NULL,
    done INTEGER NOT NULL,
    total INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    seconds_left FLOAT,
    songs_per_second FLOAT,
    cancel_requested BOOLEAN NOT NULL,
    pid INTEGER,
    created_at FLOAT NOT NULL,
    updated_at FLOAT NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE files (
    path TEXT NOT NULL,
    song_id INTEGER NOT NULL,
    folder TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    PRIMARY KEY (path),
    FOREIGN KEY(song_id) REFERENCES songs (id) ON DELETE CASCADE
);
CREATE INDEX ix_files_song_id ON files (song_id);
CREATE TABLE tags (
    song_id INTEGER NOT NULL,
    tag TEXT NOT NULL,
    weight FLOAT NOT NULL,
    PRIMARY KEY (song_id, tag),
    FOREIGN KEY(song_id) REFERENCES songs (id) ON DELETE CASCADE
);
CREATE TABLE plays (
    listener TEXT NOT NULL,
    song_id INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (listener, song_id),
    FOREIGN KEY(song_id) REFERENCES songs (id) ON DELETE CASCADE
);
CREATE TABLE playlist_songs (
    playlist_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    song_id INTEGER NOT NULL,
    PRIMARY KEY (playlist_id, position),
    FOREIGN KEY(playlist_id) REFERENCES playlists (id) ON DELETE CASCADE,
    FOREIGN KEY(song_id) REFERENCES songs (id) ON DELETE CASCADE
);
CREATE TABLE vectors (
    model_id TEXT NOT NULL,
    "row" INTEGER NOT NULL,
    song_id INTEGER NOT NULL,
    PRIMARY KEY (model_id, "row"),
    FOREIGN KEY(model_id) REFERENCES models (id) ON DELETE CASCADE,
    FOREIGN KEY(song_id) REFERENCES songs (id) ON DELETE CASCADE
);
CREATE TABLE feedback (
    song_id INTEGER NOT NULL,
    value INTEGER NOT NULL,
    created_at FLOAT NOT NULL,
    PRIMARY KEY (song_id),
    FOREIGN KEY(song_id) REFERENCES songs (id) ON DELETE CASCADE
);
