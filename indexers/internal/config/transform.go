package config

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/crdcache/crdcache/internal/naming"
	yaml "go.yaml.in/yaml/v3"
)

// Transform transforms a value.
type Transform struct {
	// Name identifies the transform.
	Name string
	// Apply returns false if it leaves no value.
	Apply func(string) (string, bool)
	// MaxInput is the maximum size of input in bytes; 0 means no limit.
	MaxInput int
}

func newTransform(name string, f func(string) string) Transform {
	return Transform{Name: name, Apply: func(s string) (string, bool) { return f(s), true }}
}

var namedTransforms = map[string]Transform{
	"lower": newTransform("lower", strings.ToLower),
	"upper": newTransform("upper", strings.ToUpper),
	// copied, so that it does not pin a long text
	"trim": newTransform("trim", func(s string) string { return strings.Clone(strings.TrimSpace(s)) }),
}

// compileTransform compiles a word, or {regex: ...}.
func (d *decoder) compileTransform(f *transformForm) Transform {
	switch n := f.node; {
	case n.Kind == yaml.MappingNode:
		if d.decodeForm(f, n, "a transform") {
			return d.compileRegex(&f.Regex)
		}
	case n.Kind == yaml.ScalarNode && n.Value == "regex":
		d.failAt(CodeWrongType, n, "regex needs an expression",
			`write {regex: {match: '^https?://([^/]+)', group: 1}}`)
	default:
		const hint = "write lower, upper, trim or {regex: {match: ...}}"
		name, _ := d.decodeChoiceOr(hint, n, "a transform", "lower", "upper", "trim")
		return namedTransforms[name]
	}
	return Transform{}
}

// compileRegex compiles {match, group}.
func (d *decoder) compileRegex(f *regexForm) Transform {
	text := f.Match.value
	if text == "" {
		return Transform{}
	}
	re, err := naming.CompileRegexp(text)
	if err != nil {
		d.reportRegexError(f.Match.node, text, err)
		return Transform{}
	}
	group, ok := d.compileGroup(f.Group.node, re)
	if !ok {
		return Transform{}
	}
	apply := func(s string) (string, bool) {
		m := re.FindStringSubmatchIndex(s)
		if m == nil || m[2*group] < 0 {
			return "", false
		}
		return strings.Clone(s[m[2*group]:m[2*group+1]]), true
	}
	return Transform{Name: fmt.Sprintf("regex %d %q", group, text), MaxInput: naming.MaxRegexpInput, Apply: apply}
}

// reportRegexError reports an invalid expression at the invalid part.
func (d *decoder) reportRegexError(n *yaml.Node, text string, err error) {
	at, message := d.file.PositionOf(n), err.Error()
	if large := (*naming.RegexpTooLargeError)(nil); errors.As(err, &large) {
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
	d.fail(CodeRegex, at, "this is not a regular expression: "+message,
		"use the syntax of Go (RE2), which has no look-around and no back-references")
}

// compileGroup returns the group of a number or a name; 0 by default.
func (d *decoder) compileGroup(n *yaml.Node, re *regexp.Regexp) (int, bool) {
	if n == nil {
		return 0, true
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		if i := re.SubexpIndex(n.Value); i >= 0 {
			return i, true
		}
		names := re.SubexpNames()[1:]
		hint := didYouMean(n.Value, names, "use the number of a group, or name one by (?P<name>...)")
		d.failAt(CodeUnknownValue, n, fmt.Sprintf("the expression has no group %q", n.Value), hint)
		return 0, false
	}
	i, ok := d.decodeNumber(n, `"group"`, numberRange{0, re.NumSubexp()})
	return i, ok
}
