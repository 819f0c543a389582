"""`python -m envspec` is the `envspec` command."""

from envspec.cli.main import main

if __name__ == "__main__":
    main()
