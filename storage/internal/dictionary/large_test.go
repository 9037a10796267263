package dictionary_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// largeFamilies generate the JSON of large objects, with managedFields, as API servers send it.
var largeFamilies = map[string]func(n int) []byte{
	"deployments":   deployment,
	"pods":          pod,
	"policyreports": policyReport,
	"workflows":     workflow,
	"certificates":  largeCertificate,
	"definitions":   definition,
}

// valueSource generates the differences between objects. Equal seeds generate equal values.
type valueSource struct{ *rand.Rand }

func newValueSource(family uint64, n int) valueSource {
	return valueSource{rand.New(rand.NewPCG(family, uint64(n)))}
}

func (s valueSource) hex(digits int) string {
	const alphabet = "0123456789abcdef"
	var text strings.Builder
	for range digits {
		text.WriteByte(alphabet[s.IntN(len(alphabet))])
	}
	return text.String()
}

func (s valueSource) uid() string {
	return s.hex(8) + "-" + s.hex(4) + "-4" + s.hex(3) + "-a" + s.hex(3) + "-" + s.hex(12)
}

func (s valueSource) time() string {
	return fmt.Sprintf("2026-%02d-%02dT%02d:%02d:%02dZ", 1+s.IntN(11), 1+s.IntN(28), s.IntN(24),
		s.IntN(60), s.IntN(60))
}

func (s valueSource) word() string { return words[s.IntN(len(words))] }

var words = strings.Fields(`checkout payments catalog search identity billing gateway inventory orders shipping pricing
	recommendations sessions notifications audit ledger media thumbnails exports imports scheduler metrics traces events`)

// list returns a list of generated elements.
func list(count int, generate func(n int) string) string {
	items := make([]string, count)
	for n := range items {
		items[n] = generate(n)
	}
	return strings.Join(items, ",")
}

// managedFieldsEntry is one entry of managedFields.
func managedFieldsEntry(manager, apiVersion, subresource, at, fields string) string {
	if subresource != "" {
		subresource = fmt.Sprintf(`,"subresource":%q`, subresource)
	}
	return fmt.Sprintf(`{"apiVersion":%q,"fieldsType":"FieldsV1","fieldsV1":%s,"manager":%q,"operation":"Update"%s,"time":%q}`, apiVersion, fields, manager, subresource, at)
}

// keys returns the part of managedFields for these keys.
func keys(names ...string) string {
	return `{".":{},` + list(len(names),
		func(n int) string { return fmt.Sprintf(`"f:%s":{}`, names[n]) }) + `}`
}

// TestFamilies verifies that the generated objects are valid JSON of the expected size, and equal for equal
// numbers.
func TestFamilies(t *testing.T) {
	for name, family := range largeFamilies {
		t.Run(name, func(t *testing.T) {
			total := 0
			const count = 200
			for n := range count {
				object := family(n)
				total += len(object)
				if !json.Valid(object) {
					t.Fatalf("object %d is not JSON:\n%s", n, object)
				}
				if !bytes.Equal(object, family(n)) {
					t.Fatalf("object %d differs between calls", n)
				}
			}
			if average := total / count; average < 7_000 || average > 14_000 {
				t.Errorf("objects have %d bytes on average, want 7,000 to 14,000", average)
			}
		})
	}
}
