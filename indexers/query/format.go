package query

import (
	"cmp"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
)

func (matchAll) String() string { return "*" }

func (j junction) String() string {
	switch {
	case len(j.subs) == 1:
		return textOfQuery(j.subs[0])
	case len(j.subs) == 0 && j.isOr:
		return "!*"
	case len(j.subs) == 0:
		return "*"
	}
	separator := " && "
	if j.isOr {
		separator = " || "
	}
	texts := make([]string, len(j.subs))
	for i, q := range j.subs {
		texts[i] = textOfQuery(q)
		if sub, ok := q.(junction); ok && len(sub.subs) > 1 {
			texts[i] = "(" + texts[i] + ")"
		}
	}
	return strings.Join(texts, separator)
}

// noQuery is the text of a nil query. It cannot be parsed.
const noQuery = "<nil>"

func textOfQuery(q Query) string {
	if q == nil {
		return noQuery
	}
	return q.String()
}

func (n negation) String() string {
	text := textOfQuery(n.sub)
	if isAtomic(n.sub) {
		return "!" + text
	}
	return "!(" + text + ")"
}

// isAtomic reports whether a query can follow "!" without parentheses.
func isAtomic(q Query) bool {
	switch q := q.(type) {
	case matchAll, negation, *labelQuery, *condition, *celQuery, *referenceQuery:
		return true
	case *comparison:
		return q.op == opExists
	case junction:
		return len(q.subs) == 0 || len(q.subs) == 1 && isAtomic(q.subs[0])
	}
	return false
}

var operatorText = map[operator]string{
	opEqual: "=", opLess: "<", opAtMost: "<=", opGreater: ">", opAtLeast: ">=", opPrefix: "^=",
	opMatches: "=~",
}

func (c *comparison) String() string {
	switch c.op {
	case opExists:
		return c.index
	case opContains:
		return c.index + " contains " + c.values[0].String()
	case opWithin:
		return c.index + " in " + c.values[0].String()
	case opIn:
		return c.index + " in (" + strings.Join(naming.Texts(c.values, value.String), ", ") + ")"
	case opRange:
		return c.index + " in [" + c.values[0].String() + ", " + c.values[1].String() + ")"
	}
	return c.index + operatorText[c.op] + c.values[0].String()
}

func (l *labelQuery) String() string { return "label(" + jsontext.Compact(l.text) + ")" }

func (c *condition) String() string { return "where(" + jsontext.Compact(c.text) + ")" }

func (c *celQuery) String() string { return "cel(" + jsontext.Compact(c.text) + ")" }

func (r *referenceQuery) String() string {
	name := map[referenceKind]string{refDangling: "dangling", refersTo: "refersTo", referredBy: "referredBy"}[r.kind]
	var arguments []string
	if r.kind != refDangling {
		typ := runtimeschema.GroupKind{Group: r.object.Group, Kind: cmp.Or(r.object.Kind, r.object.Resource)}
		arguments = append(arguments, quoteIfNeeded(typ.String()), quoteIfNeeded(r.object.Key()))
	}
	if r.reference != "" {
		arguments = append(arguments, quoteIfNeeded(r.reference))
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// quoteIfNeeded formats a text, quoted if necessary.
func quoteIfNeeded(text string) string {
	if needsNoQuotes(text) {
		return text
	}
	return jsontext.Compact(text)
}

// String returns the value in the text syntax. A single part that contains "/" or "\" is put between
// parentheses, because a composite index would split it.
func (v value) String() string {
	text := strings.Join(v.parts, "")
	isExact := false
	if !v.isJoinedText {
		isExact = len(v.parts) == 0 || len(v.parts) == 1 && strings.ContainsAny(text, `/\`)
		text = indexers.Value(v.parts...)
	}
	text = quoteIfNeeded(text)
	switch {
	case len(v.parts) == 0:
		return "()"
	case isExact:
		return "(" + text + ")"
	}
	return text
}

// needsNoQuotes reports whether a text can be written without quotes.
func needsNoQuotes(text string) bool {
	isQuoted := func(r rune) bool { return !isUnquotedRune(r) }
	// "~" would be read as part of =~
	return text != "" && text[0] != '~' && !strings.ContainsFunc(text, isQuoted)
}

func isUnquotedRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		strings.ContainsRune(`-._/:+@%~\#`, r) || r >= 0xa0 && r != 0xfffd
}
