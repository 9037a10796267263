package print

import (
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
)

// Printable replaces everything in text that a terminal would act on, line breaks included.
func Printable(text string) string { return strings.Map(Visible, text) }

// Visible replaces a character that a terminal would act on.
func Visible(r rune) rune {
	if steers(r) {
		return replacement()
	}
	return r
}

// steers reports whether a terminal does something else with r than to show it. Besides control characters
// these are the ones that begin and end another line, or that turn the direction of all that follows: with
// them a name shows as another one, and the columns of a table change places.
func steers(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return true
	case r == '\u2028', r == '\u2029':
		return true
	}
	return '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069'
}

// replacement is shown in place of a character that is not.
func replacement() rune {
	if Unicode() {
		return unicode.ReplacementChar
	}
	return '?'
}

// MaxLine bounds a line in runes: what a server or a file says may be a whole web page.
const MaxLine = 2000

// Line makes text a part of a line that is safe to show on a terminal, and not too long.
func Line(text string) string {
	return Cut(Printable(strings.Join(strings.Fields(text), " ")), MaxLine)
}

// Cut shortens text to so many characters, of which the last ones then tell that there was more.
func Cut(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	end := Ellipsis()
	keep := max(most-utf8.RuneCountInString(end), 0)
	for i := range text {
		if keep == 0 {
			return text[:i] + end
		}
		keep--
	}
	return text
}

// Unicode reports whether the locale says that characters beyond ASCII can be shown. Without any locale they
// are taken to be fine: few terminals are left where they are not, and many containers set none. It is for
// characters of our own; data is passed on as it is.
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

// OneOf checks a flag that takes one of a few words.
func OneOf(what, given string, words []string) error {
	for _, word := range words {
		if word == given {
			return nil
		}
	}
	return exit.Usagef("there is no %s %q; use one of %s", what, given, strings.Join(words, ", "))
}

// CompleteWords makes the shell complete a flag that takes one of a few words; of those that end with "=..."
// an argument is to follow.
func CompleteWords(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag,
		func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			var all []string
			directive := cobra.ShellCompDirectiveNoFileComp
			for _, word := range words {
				word = strings.TrimSuffix(word, "...")
				if strings.HasPrefix(word, begun) {
					all = append(all, word)
				}
			}
			if len(all) == 1 && strings.HasSuffix(all[0], "=") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			return all, directive
		})
}
