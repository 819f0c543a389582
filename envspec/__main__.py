"""`python -m envspec` is the `envspec` command."""

from envspec.cli import main

if __name__ == "__main__":
    main()
