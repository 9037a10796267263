package print

import (
	"testing"
	"unicode/utf8"
)

// TestUnicode verifies that the character set of the first variable that is set is used.
func TestUnicode(t *testing.T) {
	for _, tt := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", true},
		{"C", "", "", false},
		{"POSIX", "", "en_US.UTF-8", false},
		{"", "ISO-8859-1", "en_US.UTF-8", false},
		{"", "", "de_DE.ISO-8859-15@euro", false},
		{"", "", "de_DE.UTF-8", true},
		{"C.utf8", "", "C", true},
		{"", "en_US.UTF-8", "C", true},
		{"", "", "en_US", false},
	} {
		t.Setenv("LC_ALL", tt.all)
		t.Setenv("LC_CTYPE", tt.ctype)
		t.Setenv("LANG", tt.lang)
		if got := SupportsUnicode(); got != tt.want {
			t.Errorf("%+v: SupportsUnicode() = %v, want %v", tt, got, tt.want)
		}
		if end := Ellipsis(); tt.want == (utf8.RuneCountInString(end) == len(end)) {
			t.Errorf("%+v: Ellipsis() = %q, want … if Unicode is supported, otherwise ...", tt, end)
		}
	}
}

// TestTruncate verifies that text is cut between characters, with space for the ellipsis.
func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		text           string
		most           int
		ascii, unicode string
	}{
		{"abcdef", 6, "abcdef", "abcdef"},
		{"abcdef", 5, "ab...", "abcd…"},
		{"äöüß", 4, "äöüß", "äöüß"},
		{"äöüßa", 4, "ä...", "äöü…"},
		{"abcdef", 0, "...", "…"},
		{"", 0, "", ""},
	} {
		for locale, want := range map[string]string{"C": tt.ascii, "C.UTF-8": tt.unicode} {
			t.Setenv("LC_ALL", locale)
			if got := Truncate(tt.text, tt.most); got != want {
				t.Errorf("%s: Truncate(%q, %d) = %q, want %q", locale, tt.text, tt.most, got, want)
			}
		}
	}
}

// TestPrintable verifies that bidirectional controls and line separators are replaced.
func TestPrintable(t *testing.T) {
	const hostile = "a\u202eb\u2066c\u2028d\x1b\ne\u200df\u0301"
	for locale, want := range map[string]string{
		"C": "a?b?c?d??e\u200df\u0301", "C.UTF-8": "a\ufffdb\ufffdc\ufffdd\ufffd\ufffde\u200df\u0301",
	} {
		t.Setenv("LC_ALL", locale)
		if got := Printable(hostile); got != want {
			t.Errorf("%s: Printable() = %q, want %q", locale, got, want)
		}
	}
}
