package indexers

import (
	"strings"
	"unicode"

	"github.com/crdcache/crdcache/indexers/internal/config"
)

// Operand gives the text of a part as the index has it: with lower, upper and trim applied, so that it is found however
// it is written. A regex is not applied, because what is looked up is what the regex gave, and neither is a trim before
// one. What stands for a missing value is left as it is. Of text that is only the beginning of a value (open), blanks at
// the end stay.
//
// [Index.Key] and [Index.Prefix] do not do this.
func (i *Index) Operand(part int, text string, open bool) string {
	p := &i.parts[part]
	if text == Null || p.Missing.Kind == config.MissingValue && text == p.Missing.Value {
		return text
	}
	last := -1
	for n, t := range p.Transforms {
		if strings.HasPrefix(t.Name, "regex ") {
			last = n
		}
	}
	for n, t := range p.Transforms {
		switch {
		case strings.HasPrefix(t.Name, "regex "), t.Name == "trim" && n < last:
		case t.Name == "trim" && open:
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		default:
			text, _ = t.Apply(text)
		}
	}
	return text
}
