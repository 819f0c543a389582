"""Files on disk: the interpreter, the installed packages, and whose file each is."""
