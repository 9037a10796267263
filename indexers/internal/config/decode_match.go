package config

import (
	"fmt"
	"regexp"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// match reads which resource is meant.
func (d *decoding) match(n *yaml.Node, r *Resource) {
	f, ok := d.mapping(n, `"match"`, fieldsOf[matchForm]())
	if !ok {
		return
	}
	const groupHint = `write group: example.com, or group: "" for the core group`
	if v, ok := d.required(f, "the match", "group", groupHint); ok {
		// Only here does empty text mean something.
		if v.Kind != yaml.ScalarNode || v.ShortTag() != "!!str" || v.Value != "" {
			r.Match.Group = d.patternText(v, `"group"`, groupHint)
		}
		r.At.Group = d.file.PlaceOf(v)
	}
	if v := f.get("version"); v != nil {
		r.Match.Version = d.matchText(v, `"version"`, "write a version such as v1, or leave it out for the one that the server prefers")
		r.At.Version = d.file.PlaceOf(v)
	}
	if v := f.get("versions"); v != nil {
		r.Match.Versions, _ = d.choice(v, `"versions"`, wordsOf[matchForm]("versions")...)
		if f.get("version") != nil {
			d.failAt(CodeContradict, f.keys["versions"], `"version" and "versions" do not go together`, "keep version for that one alone, or versions for the one that the server prefers")
		}
	}
	d.matchName(f, r)
}

// matchName reads the resource or the kind.
func (d *decoding) matchName(f fieldMap, r *Resource) {
	switch names := f.present("resource", "kind"); len(names) {
	case 0:
		if !f.excuse("resource", "kind") {
			d.fail(CodeRequired, d.file.PlaceOf(f.node), `the match has neither "resource" nor "kind"`, "add resource: with the plural name, or kind:")
		}
	case 2:
		d.failAt(CodeContradict, f.keys["kind"], `"resource" and "kind" do not go together`, "keep resource, which is exact")
	default:
		v := f.get(names[0])
		r.At.Name = d.file.PlaceOf(v)
		if names[0] == "kind" {
			r.Match.Kind = d.matchText(v, `"kind"`, "write a kind such as Certificate; patterns go with resource")
		} else {
			r.Match.Resource = d.patternText(v, `"resource"`, "write the plural name, such as certificates, or a pattern")
		}
	}
}

var patternForm = regexp.MustCompile(`^[A-Za-z0-9*]([A-Za-z0-9.*-]{0,251}[A-Za-z0-9*])?$`)

func (d *decoding) matchText(n *yaml.Node, what, hint string) string {
	s, ok := d.text(n, what, hint)
	if ok && !nameForm.MatchString(s) {
		d.failAt(CodeName, n, fmt.Sprintf("%s cannot be %q", what, s), hint)
	}
	return s
}

// patternText reads a name or a pattern.
func (d *decoding) patternText(n *yaml.Node, what, hint string) string {
	s, ok := d.text(n, what, hint)
	switch {
	case ok && strings.Contains(s, "?"):
		d.failAt(CodeName, n, fmt.Sprintf("%s cannot be %q", what, s), "in a pattern * stands for any run of characters, and nothing stands for one")
	case ok && !patternForm.MatchString(s):
		d.failAt(CodeName, n, fmt.Sprintf("%s cannot be %q", what, s), hint)
	}
	return s
}
