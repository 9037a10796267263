package manifest

import (
	"bytes"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
}

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

func (c *Canonical) entry() Entry {
	return Entry{Data: c.Text, Canonical: c, APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Namespace,
		Name: c.Name}
}

// identify sets the fields that identify the object, and reports whether all need no decoding.
func (c *Canonical) identify() (isValid bool) {
	last := *c
	c.APIVersion, c.Kind, c.Namespace, c.Name, c.ResourceVersion, c.hasItems = "", "", "", "", "", false
	for m := range jsontext.Members(c.Text) {
		switch string(m.Key) {
		case "apiVersion":
			c.APIVersion = sameText(last.APIVersion, m.Value)
		case "items":
			c.hasItems = true
		case "kind":
			c.Kind = sameText(last.Kind, m.Value)
		case "metadata":
			for m := range jsontext.Members(m.Value) {
				switch string(m.Key) {
				case "name":
					c.Name = stringOf(m.Value)
				case "namespace":
					c.Namespace = sameText(last.Namespace, m.Value)
				case "resourceVersion":
					c.ResourceVersion = stringOf(m.Value)
				}
			}
			isValid = json.Unmarshal(m.Value, &metav1.ObjectMeta{}) == nil
		}
		if string(m.Key) >= "metadata" {
			break // the keys are sorted
		}
	}
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
