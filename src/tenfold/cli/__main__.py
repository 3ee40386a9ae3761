"""`python -m tenfold.cli` is `tenfold`."""

from tenfold.cli import app

app(prog_name="tenfold")
