package config

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers/internal/regex"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// Transform changes a value.
type Transform struct {
	// Name tells it from others.
	Name string
	// Apply returns false if it leaves no value.
	Apply func(string) (string, bool)
	// MaxInput is the number of bytes of the longest value that Apply takes; 0 for no limit.
	MaxInput int
}

func always(name string, f func(string) string) Transform {
	return Transform{Name: name, Apply: func(s string) (string, bool) { return f(s), true }}
}

var namedTransforms = map[string]Transform{
	"lower": always("lower", strings.ToLower),
	"upper": always("upper", strings.ToUpper),
	// A part of a long text should not keep all of it alive.
	"trim": always("trim", func(s string) string { return strings.Clone(strings.TrimSpace(s)) }),
}

// transforms reads one transform or a list of them.
func (d *decoding) transforms(n *yaml.Node) []Transform {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items, _ = d.list(n, `"transform"`, "name at least one of lower, upper, trim, regex")
	}
	var out []Transform
	for _, item := range items {
		if t := d.transform(item); t.Apply != nil {
			out = append(out, t)
		}
	}
	return out
}

func (d *decoding) transform(n *yaml.Node) Transform {
	if n.Kind != yaml.MappingNode {
		if n.Kind == yaml.ScalarNode && n.Value == "regex" {
			d.failAt(CodeWrongType, n, "regex needs an expression", `write {regex: {match: '^https?://([^/]+)', group: 1}}`)
			return Transform{}
		}
		name, _ := d.choiceOr("write lower, upper, trim or {regex: {match: ...}}", n, "a transform", "lower", "upper", "trim")
		return namedTransforms[name]
	}
	f, ok := form[transformForm](d, n, "a transform")
	if !ok {
		return Transform{}
	}
	v := f.get("regex")
	if v == nil {
		return Transform{}
	}
	return d.regex(v)
}

// regex reads {match, group}.
func (d *decoding) regex(n *yaml.Node) Transform {
	f, ok := form[regexForm](d, n, `"regex"`)
	if !ok {
		return Transform{}
	}
	v := f.get("match")
	if v == nil {
		return Transform{}
	}
	text, ok := d.text(v, `"match"`, tagOf[regexForm]("match").Get("hint"))
	if !ok {
		return Transform{}
	}
	re, err := regex.Compile(text)
	if err != nil {
		d.regexError(v, text, err)
		return Transform{}
	}
	group := 0
	if g := f.get("group"); g != nil {
		if group, ok = d.group(g, re); !ok {
			return Transform{}
		}
	}
	return Transform{Name: fmt.Sprintf("regex %d %q", group, text), MaxInput: regex.MaxInput, Apply: func(s string) (string, bool) {
		m := re.FindStringSubmatchIndex(s)
		if m == nil || m[2*group] < 0 {
			return "", false
		}
		return strings.Clone(s[m[2*group]:m[2*group+1]]), true
	}}
}

// regexError shows the part of the expression that is wrong.
func (d *decoding) regexError(n *yaml.Node, text string, err error) {
	at, message := d.file.PlaceOf(n), err.Error()
	if large := (*regex.TooLargeError)(nil); errors.As(err, &large) {
		d.fail(CodeRegex, at, message, "match a part of the text")
		return
	}
	var e *syntax.Error
	if errors.As(err, &e) {
		message = e.Code.String() + ": " + e.Expr
		if i := strings.Index(text, e.Expr); e.Expr != "" && i >= 0 {
			at = d.file.Within(n, i, i+len(e.Expr))
		}
	}
	d.fail(CodeRegex, at, "this is not a regular expression: "+message, "use the syntax of Go (RE2), which has no look-around and no back-references")
}

// group reads the number or the name of a group.
func (d *decoding) group(n *yaml.Node, re *regexp.Regexp) (int, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		if i := re.SubexpIndex(n.Value); i >= 0 {
			return i, true
		}
		names := re.SubexpNames()[1:]
		d.failAt(CodeUnknownValue, n, fmt.Sprintf("the expression has no group %q", n.Value), didYouMean(n.Value, names, "use the number of a group, or name one by (?P<name>...)"))
		return 0, false
	}
	i, ok := d.number(n, `"group"`, bounds{0, re.NumSubexp()})
	return i, ok
}

// missing reads what stands for a missing value.
func (d *decoding) missing(n *yaml.Node, dialect jsonpath.Dialect, within bool) (Missing, []Source) {
	const hint = "write skip, null, report, {value: X} or {path: X}"
	switch {
	case isNull(n) && strings.EqualFold(n.Value, "null"):
		return Missing{Kind: MissingNull}, nil
	case isNull(n) || n.Kind == yaml.SequenceNode:
		d.wrong(n, `"missing"`, "a word or a map", hint)
		return Missing{}, nil
	case n.Kind == yaml.MappingNode:
		return d.missingMap(n, hint, dialect, within)
	}
	switch s, _ := d.choiceOr(hint, n, `"missing"`, "skip", "null", "report"); s {
	case "null": // in quotes
		return Missing{Kind: MissingNull}, nil
	case "report":
		return Missing{Kind: MissingReport}, nil
	}
	return Missing{}, nil
}

// missingMap reads the value, or the path to it, that stands for a missing one.
func (d *decoding) missingMap(n *yaml.Node, hint string, dialect jsonpath.Dialect, within bool) (Missing, []Source) {
	f, ok := form[missingForm](d, n, `"missing"`)
	if !ok {
		return Missing{}, nil
	}
	names := f.present("value", "path")
	switch {
	case len(names) == 2:
		d.failAt(CodeContradict, f.keys["path"], `"value" and "path" do not go together`, "keep one of them")
	case len(names) == 1 && names[0] == "path":
		sources := d.appendSource(nil, f.get("path"), `"path"`, dialect, within)
		for i := range sources {
			sources[i].Default = true
		}
		return Missing{}, sources
	}
	v := f.get("value")
	if v == nil && !f.excuse("value", "path") {
		d.fail(CodeRequired, d.file.PlaceOf(n), `"missing" has no "value"`, hint)
	}
	if v == nil || !d.want(v, yaml.ScalarNode, `"value"`, "text, a number or a boolean", hint) {
		return Missing{}, nil
	}
	if isNull(v) {
		d.wrong(v, `"value"`, "text, a number or a boolean", "write missing: null, or \"null\" in quotes for the text")
		return Missing{}, nil
	}
	return Missing{Kind: MissingValue, Value: v.Value, At: v}, nil // as it is written: 1.10 stays 1.10
}
