package print

import (
	"os"
	"strings"
)

// Unicode reports whether the locale says that characters beyond ASCII can be shown. Without any locale they are
// taken to be fine: few terminals are left where they are not, and many containers set none. It is for characters
// of our own; data is passed on as it is.
func Unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first that is set counts
		if locale := os.Getenv(name); locale != "" {
			charset := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(locale))
			return strings.Contains(charset, "utf8")
		}
	}
	return true
}

// Symbol is a character of our own: this one, or what stands for it where the locale has ASCII alone.
func Symbol(unicode, ascii string) string {
	if Unicode() {
		return unicode
	}
	return ascii
}

// Ellipsis stands for what was left out.
func Ellipsis() string { return Symbol("…", "...") }
