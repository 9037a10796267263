package naming_test

import (
	"errors"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/crdcache/crdcache/internal/naming"
)

var seeds = [][2]string{
	{"team-*", "team-a"}, {"team-*", "team-"}, {"team-*", "team"}, {"prod", "prod"}, {"prod", "prod-eu"}, {"",
		""}, {"", "a"}, {"*", ""}, {"*", "a"},
	{"a*b*c", "a-b-b-c"}, {"a*b*c", "abc"}, {"a*b*c", "acb"}, {"ab*ba", "aba"}, {"ab*ba", "abba"}, {"*a",
		"ba"}, {"**", "x"}, {"a**", "a"}, {"*a*", "bab"},
	{"a?", "ab"}, {"[a]", "a"}, {`\*`, "*"}, {"a.*", "axb"}, {"*.crossplane.io",
		"s3.aws.crossplane.io"}, {"*.crossplane.io", "crossplane.io"}, {"[", "["}, {"a[b-", "ab"},
}

func TestMatch(t *testing.T) {
	for _, seed := range seeds {
		matchAgrees(t, seed[0], seed[1])
	}
}

func FuzzMatch(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(matchAgrees)
}

// matchAgrees compares Match with a regular expression, and MatchGlob with path.Match.
func matchAgrees(t *testing.T, text, name string) {
	parts := strings.Split(text, "*")
	for k := range parts {
		parts[k] = regexp.QuoteMeta(parts[k])
	}
	if reference, err := regexp.Compile("(?s)^" + strings.Join(parts, ".*") + "$"); err == nil &&
		reference.MatchString(name) != naming.Match(text, name) {
		t.Errorf("Match(%q, %q) = %v, which differs from the regular expression", text, name,
			naming.Match(text, name))
	}
	if strings.Contains(name, "/") {
		return
	}
	want, err := path.Match(text, name)
	if got := naming.MatchGlob(text, name); got != (want && err == nil) {
		t.Errorf("the glob %q matches %q: %v; want %v, %v", text, name, got, want, err)
	}
	if err != nil && naming.CheckGlob(text) == nil {
		t.Errorf("CheckGlob(%q) = nil, but path.Match fails: %v", text, err)
	}
	if (naming.CheckGlob(text) != nil) && !naming.IsGlob(text) {
		t.Errorf("CheckGlob(%q) fails for a text that is not a glob", text)
	}
}

func TestCompileBoundsTheProgram(t *testing.T) {
	for _, text := range []string{
		`^https?://([^/]+)`, `^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?$`, `(?i)\p{L}+`,
		`^(?P<host>[^/]+)(:[0-9]{1,5})?$`, ``,
		`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$`,
	} {
		if _, err := naming.CompileRegexp(text); err != nil {
			t.Errorf("CompileRegexp(%s): %v", text, err)
		}
	}
	for _, text := range []string{`(?:a?){1000}b{1000}`, `(?:(?:a?b?){30}){30}`, `[a-z]{1000}`,
		strings.Repeat("abc", 1000)} {
		if _, err := naming.CompileRegexp(text); !errors.Is(err, naming.ErrRegexpTooLarge) {
			t.Errorf("CompileRegexp(%.40s) = %v, want ErrRegexpTooLarge", text, err)
		}
	}
	var wrong *syntax.Error
	if _, err := naming.CompileRegexp(`(a`); !errors.As(err, &wrong) {
		t.Error(err)
	}
}

func TestParseQuantity(t *testing.T) {
	for _, text := range []string{"0", "64Mi", "1E", "1e3", "-5m", "+.5", "5.", "1e-8192"} {
		want := resource.MustParse(text)
		if got, err := naming.ParseQuantity(text); err != nil || got.Cmp(want) != 0 {
			t.Errorf("ParseQuantity(%q) = %s, %v; want %s", text, got.String(), err, want.String())
		}
	}
	for _, text := range []string{"", "M", "Mi", "-", "+Gi", ".", "E", "lots", "1 GB", "0x1", "1e-40000000",
		"1e99999999999999999999", strings.Repeat("1", 10000)} {
		if got, err := naming.ParseQuantity(text); err == nil {
			t.Errorf("ParseQuantity(%.20q) = %s, want an error", text, got.String())
		}
	}
}
