"""The package's self-test, as a stranger's first command."""

import subprocess
import sys
import unittest


class SelfTestTest(unittest.TestCase):
    def test_it_passes_without_numpy(self):
        """A bare virtual environment with torch has none."""
        script = "import sys; sys.modules['numpy'] = None; from rematch.selftest import main; sys.exit(main())"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line[:3] for line in done.stdout.splitlines()], ["ok:"] * 6)


if __name__ == "__main__":
    unittest.main()
