"""`python -m shiftbook` is the command line."""

from shiftbook.cli import main

if __name__ == "__main__":
    main()
