"""The representations that this extension adds."""

from musicsim.extensions.embeddings import ear, encoder

REPRESENTATIONS = encoder.REPRESENTATIONS | ear.REPRESENTATIONS
