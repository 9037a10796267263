package manifest

import (
	"bytes"
	"strings"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// Canonical is the text of an object as encoding/json writes it: without white space, and with sorted keys.
// One pass writes it, finds its end, and shows that no key occurs twice. The fields are valid until the next
// call of Read.
type Canonical struct {
	Text                                               []byte
	APIVersion, Kind, Namespace, Name, ResourceVersion string

	writer   jsontext.Canonicalizer
	hasItems bool
	body     []byte // scratch
	// typeFields and keptMetadata are the fields in Text that KeepIdentity keeps.
	typeFields, keptMetadata []span
}

// span is a range of a text.
type span struct{ start, end int }

// Read reads the object that begins at data[start], and returns the offset after it. ok is false if the text
// has to be decoded: it is invalid, has a key twice, lacks a kind, a version or a name, or has metadata that
// clients cannot decode. truncated reports that data ends too early.
func (c *Canonical) Read(data []byte, start int) (end int, ok, truncated bool) {
	c.Text, end, truncated = c.writer.Append(c.Text[:0], data, start)
	return end, end >= 0 && c.identify(), truncated
}

// Body returns Text without the field apiVersion. It changes Text.
func (c *Canonical) Body() []byte {
	const start = `{"apiVersion":`
	if !bytes.HasPrefix(c.Text, []byte(start)) {
		c.body = jsontext.AppendWithout(c.body[:0], c.Text, "apiVersion")
		return c.body
	}
	body := c.Text[jsontext.ScanString(c.Text, len(start)+1):] // a kind follows
	body[0] = '{'
	return body
}

// KeepIdentity removes the fields from Text that neither identify the object nor its state, except labels.
func (c *Canonical) KeepIdentity() {
	kept := append(c.body[:0], '{')
	for _, f := range c.typeFields {
		kept = append(append(kept, c.Text[f.start:f.end]...), ',')
	}
	kept = append(kept, `"metadata":{`...)
	for _, f := range c.keptMetadata { // has a name
		kept = append(append(kept, c.Text[f.start:f.end]...), ',')
	}
	kept[len(kept)-1] = '}'
	c.Text, c.body = append(kept, '}'), c.Text
}

func (c *Canonical) entry() Entry {
	return Entry{Data: c.Text, Canonical: c, APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Namespace,
		Name: c.Name}
}

// identify sets the fields that identify the object, and reports whether all need no decoding.
func (c *Canonical) identify() (isValid bool) {
	lastVersion, lastKind, lastNamespace := c.APIVersion, c.Kind, c.Namespace
	c.APIVersion, c.Kind, c.Namespace, c.Name, c.ResourceVersion, c.hasItems = "", "", "", "", "", false
	c.typeFields, c.keptMetadata = c.typeFields[:0], c.keptMetadata[:0]
	scanMetadata := func(name, data []byte, i int) int {
		end := scanMetadataField(name, data, i)
		if end < 0 {
			return end
		}
		switch string(name) {
		case "labels", "uid":
		case "name":
			c.Name = stringOf(data[i:end])
		case "namespace":
			c.Namespace = sameText(lastNamespace, data[i:end])
		case "resourceVersion":
			c.ResourceVersion = stringOf(data[i:end])
		default:
			return end
		}
		c.keptMetadata = append(c.keptMetadata, span{i - len(name) - len(`"":`), end})
		return end
	}
	scanFields(c.Text, 0, func(name, data []byte, i int) int {
		if string(name) == "metadata" {
			isValid = scanFields(data, i, scanMetadata) >= 0
		}
		if string(name) >= "metadata" {
			return -1 // the keys are sorted
		}
		end := scanValue(data, i)
		switch string(name) {
		case "apiVersion":
			c.APIVersion = sameText(lastVersion, data[i:end])
			c.typeFields = append(c.typeFields, span{i - len(`"apiVersion":`), end})
		case "items":
			c.hasItems = true
		case "kind":
			c.Kind = sameText(lastKind, data[i:end])
			c.typeFields = append(c.typeFields, span{i - len(`"kind":`), end})
		}
		return end
	})
	return isValid && c.APIVersion != "" && c.Kind != "" && c.Name != "" && strings.Count(c.APIVersion, "/") < 2 &&
		!strings.Contains(c.Name, "/") && !strings.Contains(c.Namespace, "/")
}

// sameText returns the string in value. It returns last without copying if that is the same.
func sameText(last string, value []byte) string {
	if len(value) == len(last)+2 && value[0] == '"' && string(value[1:len(value)-1]) == last &&
		!strings.Contains(last, `\`) { // value may have an escape sequence
		return last
	}
	return stringOf(value)
}
