package print

import (
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
)

// ColorFlag is the flag --color.
type ColorFlag struct{ when string }

// Add adds the flag.
func (f *ColorFlag) Add(set *pflag.FlagSet) {
	set.StringVar(&f.when, "color", "auto", "Colour the output: auto (on a terminal, unless NO_COLOR is set), always or never.")
}

// Always reports whether colours are asked for wherever the output goes.
func (f *ColorFlag) Always() bool { return f.when == "always" }

// Enabled reports whether what goes to out is to be coloured.
func (f *ColorFlag) Enabled(out io.Writer) (bool, error) {
	switch f.when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return os.Getenv("NO_COLOR") == "" && Controllable(out), nil
	}
	return false, exit.Usagef("--color is %q; use auto, always or never", f.when)
}
