"""Makes the files of a release the same, wherever they are made."""
