package jsonpath_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubectl "k8s.io/client-go/util/jsonpath"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// runKubectl evaluates a kubectl template with one pair of braces.
func runKubectl(template string, obj any, allowMissing bool) ([]any, error) {
	k := kubectl.New("test").AllowMissingKeys(allowMissing)
	if err := k.Parse(template); err != nil {
		return nil, err
	}
	found, err := k.FindResults(obj)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, results := range found {
		for _, r := range results {
			if !r.IsValid() || r.Kind() == reflect.Interface && r.IsNil() {
				out = append(out, nil)
				continue
			}
			out = append(out, r.Interface())
		}
	}
	return out, nil
}

// TestKubectlQuirks verifies the unexpected behaviour of client-go's util/jsonpath that docs/jsonpath.md
// lists, and the behaviour of this package for the same paths.
func TestKubectlQuirks(t *testing.T) {
	const (
		weights = `{"w":[{"n":"a","w":1},{"n":"b","w":1.5},{"n":"c","w":2}]}`
		items   = `{"items":[{"a":1,"b":2,"tags":["x"]},{"a":3,"b":4,"tags":[]},{"a":5,"b":6,"tags":["y"]}],"none":null,"s":"hi","labels":{"a.b":"1","a":{"b":"2"}}}`
		fails   = "fails"
	)
	tests := []struct {
		quirk    string
		path     string
		doc      string
		strict   bool   // without AllowMissingKeys
		kubectl  string // a JSON list, or "fails"
		ours     string // a JSON list, or an error code
		anyOrder bool   // kubectl returns the results in random order
	}{
		// quirks that this package has, too
		{quirk: "matched: a missing value fails every comparison, != too", path: `{.items[?(@.z!=1)].a}`,
			doc: items, kubectl: `[]`, ours: `[]`},
		{quirk: "matched: null exists", path: `{.l[?(@.x)].n}`, doc: `{"l":[{"x":null,"n":1},{"n":2}]}`,
			kubectl: `[1]`, ours: `[1]`},
		{quirk: "matched: a null at the end is a result", path: `{.none}`, doc: items, kubectl: `[null]`,
			ours: `[null]`},
		{quirk: "matched: a null on the way gives nothing", path: `{.none.x}`, doc: items,
			kubectl: `[]`, ours: `[]`},
		{quirk: "matched: a key of a string gives nothing", path: `{.s.x}`, doc: items,
			kubectl: `[]`, ours: `[]`},
		{quirk: "matched: a path in a filter needs no @", path: `{.items[?(.a==3)].b}`, doc: items,
			kubectl: `[4]`, ours: `[4]`},
		{quirk: "matched: blanks between steps are ignored", path: `{ .items[0] .b }`, doc: items,
			kubectl: `[2]`, ours: `[2]`},
		{quirk: "matched: @ is the object at the start", path: `{@.s}`, doc: items, kubectl: `["hi"]`,
			ours: `["hi"]`},
		{quirk: "matched: \\. in quotes is a dot in the key", path: `{.labels['a\.b']}`, doc: items,
			kubectl: `["1"]`, ours: `["1"]`},

		// quirks that this package rejects with an error
		{quirk: "rejected: kubectl prints text outside braces", path: `x{.s}`, doc: items,
			kubectl: `["x","hi"]`, ours: "E103"},
		{quirk: "rejected: more than one pair of braces", path: `{.s}{.s}`, doc: items,
			kubectl: `["hi","hi"]`, ours: "E105"},
		{quirk: "rejected: range", path: `{range .items[*]}{.a}{end}`, doc: items,
			kubectl: `[1,3,5]`, ours: "E106"},
		{quirk: "rejected: $ in a filter is the element there, the object in RFC 9535",
			path: `{.items[?($.a==3)].b}`, doc: items, kubectl: `[4]`, ours: "E116"},
		{quirk: "rejected: comparing many values fails there once there are many",
			path: `{.items[?(@.tags[0:2]=="x")].a}`, doc: `{"items":[{"a":1,"tags":["x","y"]}]}`,
			kubectl: fails, ours: "E113"},
		{quirk: "rejected: a lone literal is true there", path: `{.items[?(true)].a}`, doc: items,
			kubectl: `[1,3,5]`, ours: "E112"},
		{quirk: "rejected: .. alone is everything that has children there", path: `{..}`, doc: `{"a":{"b":1}}`,
			kubectl: `[{"a":{"b":1}},{"b":1}]`, ours: "E107"},

		// quirks that this package does not have
		{quirk: "improved: a missing key fails in strict mode", path: `{.z}`, doc: items, strict: true,
			kubectl: fails, ours: `[]`},
		{quirk: "improved: a path without braces is text there", path: `.s`, doc: items, kubectl: `[".s"]`,
			ours: `["hi"]`},
		{quirk: "improved: an index out of range fails, whatever the mode", path: `{.items[7].a}`, doc: items,
			kubectl: fails, ours: `[]`},
		{quirk: "improved: a slice out of range fails", path: `{.items[1:7].a}`, doc: items, kubectl: fails,
			ours: `[3,5]`},
		{quirk: "improved: a negative step fails", path: `{.items[::-1].a}`, doc: items, kubectl: fails,
			ours: `[5,3,1]`},
		{quirk: "improved: an index of a map fails", path: `{.labels[0]}`, doc: items,
			kubectl: fails, ours: `[]`},
		{quirk: "improved: a filter on a null fails", path: `{.none[?(@.x)]}`, doc: items,
			kubectl: fails, ours: `[]`},
		{quirk: "improved: a filter on a map fails", path: `{.labels[?(@.b=="2")]}`, doc: items,
			kubectl: fails, ours: `[{"b":"2"}]`},
		{quirk: "improved: an int literal on a float fails", path: `{.w[?(@.w>1)].n}`, doc: weights,
			kubectl: fails, ours: `["b","c"]`},
		{quirk: "improved: a float literal on an int fails", path: `{.w[?(@.w>1.2)].n}`, doc: weights,
			kubectl: fails, ours: `["b","c"]`},
		{quirk: "improved: comparing different kinds fails", path: `{.items[?(@.a=="3")]}`, doc: items,
			kubectl: fails, ours: `[]`},
		{quirk: "improved: comparing with a null fails", path: `{.l[?(@.x=="y")].n}`,
			doc: `{"l":[{"x":null,"n":1},{"x":"y","n":2}]}`, kubectl: fails, ours: `[2]`},
		{quirk: "improved: a second filter after a filter fails", path: `{.items[?(@.a==5)][?(@==6)]}`,
			doc: items, kubectl: fails, ours: `[6]`},
		{quirk: "improved: && fails", path: `{.items[?(@.a==3 && @.b==4)].a}`, doc: items,
			kubectl: fails, ours: `[3]`},
		{quirk: "improved: a nested filter fails", path: `{.items[?(@.tags[?(@=="y")])].a}`, doc: items,
			kubectl: fails, ours: `[5]`},
		{quirk: "improved: an existence test past the end of a list is true",
			path: `{.items[?(@.tags[0])].a}`, doc: items, kubectl: `[1,3,5]`, ours: `[1,5]`},
		{quirk: "improved: an empty list ends [*] for the lists after it", path: `{.items[*].tags[*]}`,
			doc: items, kubectl: `["x"]`, ours: `["x","y"]`},
		{quirk: "improved: double quotes around a key fail", path: `{.labels["a.b"]}`, doc: items,
			kubectl: fails, ours: `["1"]`},
		{quirk: "improved: .* gives the bytes of a string", path: `{.s.*}`, doc: items,
			kubectl: `[104,105]`, ours: `[]`},
		{quirk: "improved: .* on a map is in random order", path: `{.*}`, doc: `{"c":3,"a":1,"b":2}`,
			kubectl: `[1,2,3]`, ours: `[1,2,3]`, anyOrder: true},
		{quirk: "improved: a union goes over all values once per key", path: `{.items[*]['a','b']}`,
			doc: items, kubectl: `[1,3,5,2,4,6]`, ours: `[1,2,3,4,5,6]`},
		{quirk: "differs: a quoted key with a dot is two keys",
			path: `{.labels['a.b']}`, doc: items, kubectl: `["2"]`, ours: `["1"]`},
	}
	for _, tt := range tests {
		t.Run(tt.quirk, func(t *testing.T) {
			theirs, err := runKubectl(tt.path, decoded(t, tt.doc), !tt.strict)
			switch {
			case tt.kubectl == fails:
				if err == nil {
					t.Errorf("client-go returned %v, want an error", theirs)
				}
			case err != nil:
				t.Errorf("client-go: %v", err)
			default:
				if tt.anyOrder {
					sortResults(theirs)
				}
				for i, v := range theirs {
					if b, ok := v.(uint8); ok {
						theirs[i] = int64(b)
					}
				}
				if diff := cmp.Diff(list(t, tt.kubectl), theirs, valueOptions); diff != "" {
					t.Errorf("client-go (-want +got):\n%s", diff)
				}
			}

			p, err := jsonpath.Compile(tt.path)
			if strings.HasPrefix(tt.ours, "E") {
				var e *jsonpath.Error
				if !errors.As(err, &e) || string(e.Code) != tt.ours {
					t.Errorf("Compile: got the error %v, want the code %s", err, tt.ours)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(list(t, tt.ours), evaluate(t, p, []byte(tt.doc)), valueOptions); diff != "" {
				t.Errorf("results of this package (-want +got):\n%s", diff)
			}
		})
	}
}
