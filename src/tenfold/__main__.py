"""`python -m tenfold` is `tenfold`."""

from tenfold.cli import app

if __name__ == "__main__":
    app(prog_name="tenfold")
