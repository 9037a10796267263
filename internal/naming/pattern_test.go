package naming_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

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
		t.Errorf("%q matches %q: %v", text, name, naming.Match(text, name))
	}
	if strings.Contains(name, "/") {
		return
	}
	want, err := path.Match(text, name)
	if got := naming.MatchGlob(text, name); got != (want && err == nil) {
		t.Errorf("the glob %q matches %q: %v; want %v, %v", text, name, got, want, err)
	}
	if err != nil && naming.CheckGlob(text) == nil {
		t.Errorf("%q is accepted as a glob, and fails later: %v", text, err)
	}
	if (naming.CheckGlob(text) != nil) && !naming.IsGlob(text) {
		t.Errorf("%q is no glob, but a bad one", text)
	}
}
