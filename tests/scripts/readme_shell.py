"""A folder in which a test types the commands of a README, as in the root of a clone."""

import os
import pathlib
import shutil
import subprocess
import tempfile

# Shortens long commands. Two steps are enough to print the same counts, bytes and bits. Few steps are timed, because
# the tests do not compare times.
_SHORT_RUN = """#!/usr/bin/env bash
add() {{ if [[ " ${{words[*]}} " != *" $1 "* ]]; then words+=("$@"); fi; }}
words=("$@")
case " $* " in
  " run "*) add --steps 2; add --rounds 0 ;;
  " search "*" --measure "*) add --steps 2; add --rounds 1 ;;
  " profile "*) add --steps 2 ;;
esac
exec {rematch} "${{words[@]}}"
"""


class Shell:
    """Links the files of the clone into a folder, so that commands write only to this folder."""

    def __init__(self, root, rematch=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rematch_readme_"))
        for path in root.iterdir():
            if path.name not in ("scripts", "results", ".git"):
                (self.folder / path.name).symlink_to(path)
        scripts = self.folder / "scripts"
        scripts.mkdir()
        for path in (root / "scripts").iterdir():
            if path.name != "rematch":
                (scripts / path.name).symlink_to(path)
        (scripts / "rematch").write_text(_SHORT_RUN.format(rematch=rematch or root / "scripts" / "rematch"))
        (scripts / "rematch").chmod(0o755)

    def add(self, name, program):
        """Adds a command that starts the program. Through a link, Python would not find its virtual environment."""
        path = self.folder / "scripts" / name
        path.write_text(f'#!/usr/bin/env bash\nexec {program} "$@"\n')
        path.chmod(0o755)

    def close(self):
        shutil.rmtree(self.folder)

    def type(self, command):
        """Returns the finished process. `rematch` alone is the same program as `scripts/rematch`."""
        environment = {**os.environ, "PATH": f"{self.folder / 'scripts'}:{os.environ['PATH']}"}
        if command.columns:
            environment["COLUMNS"] = str(command.columns)
        return subprocess.run(["bash", "-o", "pipefail", "-c", command.text], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace")
