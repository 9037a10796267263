package config

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// match reads which resource is meant.
func (d *decoding) match(n *yaml.Node, r *Resource) {
	f, ok := form[matchForm](d, n, `"match"`)
	if !ok {
		return
	}
	if v := f.get("group"); v != nil {
		// Only here does empty text mean something.
		if v.Kind != yaml.ScalarNode || v.ShortTag() != "!!str" || v.Value != "" {
			r.Match.Group = patternText(d, "group", v)
		}
		r.At.Group = d.file.PlaceOf(v)
	}
	if v := f.get("version"); v != nil {
		r.Match.Version, _ = patterned[matchForm](d, "version", v, `"version"`)
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
			r.Match.Kind, _ = patterned[matchForm](d, "kind", v, `"kind"`)
		} else {
			r.Match.Resource = patternText(d, "resource", v)
		}
	}
}

// patternText reads a name or a pattern.
func patternText(d *decoding, field string, n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "?") {
		d.failAt(CodeName, n, fmt.Sprintf("%q cannot be %q", field, n.Value), "in a pattern * stands for any run of characters, and nothing stands for one")
		return n.Value
	}
	s, _ := patterned[matchForm](d, field, n, fmt.Sprintf("%q", field))
	return s
}
