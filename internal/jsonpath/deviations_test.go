package jsonpath_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

var deviation = regexp.MustCompile("(?m)^\\| `(.+?)` \\| `(.+?)` \\|")

// TestInvalidInRFC9535 verifies that expressions that are accepted although RFC 9535 forbids them are
// documented and evaluated as documented.
func TestInvalidInRFC9535(t *testing.T) {
	docs, err := os.ReadFile("../../docs/jsonpath.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(docs), "These forms are invalid in RFC 9535")
	section, _, _ = strings.Cut(section, "\n## ")
	accepted := map[string]bool{}
	for _, row := range deviation.FindAllStringSubmatch(section, -1) {
		accepted[row[1]] = true
		p, err := jsonpath.Compile(row[1])
		if err != nil || p.String() != row[2] {
			t.Errorf("Compile(%s) = %v, %v; want %s", row[1], p, err, row[2])
		}
	}
	if len(accepted) < 20 {
		t.Fatalf("the documentation has %d rows, want at least 20", len(accepted))
	}
	// expressions that the grammar of RFC 9535 does not allow
	for _, invalid := range []string{
		"", "$.", "$..", "$...a", "$.&", "$.'a'", `$."a"`, "$.[a]", "$a", "$$", "$.$", "$.a.", "$.*a",
		"$..*a", "$.a,b",
		"$[]", "$[,]", "$[0,]", "$[,0]", "$[0 1]", "$[a]", "$['a']['b'", "$['a'", `$["a']`, `$['a'"b"]`,
		"$[$]", "$[@]", "$[*,]",
		"$[01]", "$[-01]", "$[1.0]", "$[1e3]", "$[+1]", "$[- 1]", "$[--1]",
		"$[231584178474632390847141970017375815706539969331281128078915168015826259279872]",
		"$[01:2]", "$[1:02]", "$[1:2:03]", "$[+1:2]", "$[1:+2]", "$[1:2:+1]", "$[1:2:3:4]", "$[:::]",
		"$[- 1:]", "$[1.0:]", "$[a:b]", "$[0:1:-0]",
		`$["\u"]`, `$["\u00"]`, `$["\uD800"]`, `$["\uDC00"]`, `$["\uD800\u0041"]`, `$["\x41"]`, `$["\a"]`,
		"$[\"\t\"]", "$['\n']", "$[\"\x00\"]",
		"$[?]", "$[?()]", "$[?(@.a]", "$[?@.a)]", "$[?true]", "$[?null]", "$[?1]", "$[?'a']",
		"$[?@.a && true]", "$[?!1]", "$[?!@.a==1]",
		"$[?@.a==01]", "$[?@.a==-01]", "$[?@.a==.1]", "$[?@.a==1.]", "$[?@.a==1.e1]", "$[?@.a==1e]",
		"$[?@.a==--1]", "$[?@.a==0x1]", "$[?@.a==True]", "$[?@.a==NULL]",
		"$[?@.a==[1]]", "$[?@.a=={}]", `$[?@.a=={"b":1}]`, "$[?@.a=1]", "$[?@.a===1]", "$[?@.a!==1]",
		"$[?@.a<>1]", "$[?@.a=<1]", "$[?@.a==1==2]", "$[?@.a==@.b==@.c]", "$[?(@.a)==1]",
		"$[?@.a and @.b]", "$[?@.a AND @.b]", "$[?@.a & @.b]", "$[?@.a | @.b]", "$[?@.a &&]", "$[?|| @.a]",
		"$[?not @.a]", "$[?@.a==1 @.b]", "$[?@.a,@.b==1,]",
		"$[?@[*]==0]", "$[?@..a==0]", "$[?@['a','b']==0]", "$[?@[0:1]==0]", "$[?@[?@.a]==0]", "$[?@.*==0]",
		"$[(@.length-1)]", "$.a.length()", "$[?length(@.a)]", "$[?count(@.*)]", "$[?match(@.a)]",
	} {
		if p, err := jsonpath.Compile(invalid); err == nil && !accepted[invalid] {
			t.Errorf("Compile(%s) = %s, want an error or a row in the documentation", invalid, p)
		}
	}
	for _, valid := range []string{"$[::0]", "$[?@.a==1e400]", "$[?length(@.a)>1]", "$[?@.a==$.b]"} {
		if p, err := jsonpath.Compile(valid); err == nil {
			t.Errorf("Compile(%s) = %s, want an error", valid, p)
		}
	}
}
