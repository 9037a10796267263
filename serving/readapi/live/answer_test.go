package live

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// rowWithoutUnmarshaler is a row without UnmarshalJSON.
type rowWithoutUnmarshaler Row

func TestRowUnmarshalJSON(t *testing.T) {
	want := Row{Namespace: "n", Name: "é\"", Labels: map[string]string{"a": "b"},
		Cells: []any{"x", int64(1 << 60), 2.5, true, nil}}
	for _, want := range []Row{want, {Name: "n", Cells: []any{}}} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Row
		var stock rowWithoutUnmarshaler
		if err := got.UnmarshalJSON(text); err != nil {
			t.Error(err)
		}
		if err := utiljson.Unmarshal(text, &stock); err != nil {
			t.Error(err)
		}
		if !cmp.Equal(got, want) || !cmp.Equal(got, Row(stock)) {
			t.Errorf("UnmarshalJSON(%s) = %v, with apimachinery %v, want %v", text, got, stock, want)
		}
	}
	for _, text := range []string{"", `[]`, `{"name":"a"`, `{"name":"a"}`, `{"name":"a","cells":1}`} {
		if err := new(Row).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("UnmarshalJSON(%q) succeeded, want an error", text)
		}
	}
}

func BenchmarkRow(b *testing.B) {
	text := []byte(`{"namespace":"team-000","name":"billing-admin-000001-00140","labels":{"app":"billing",` +
		`"team":"payments"},"cells":["billing-admin-000001-00140","True","billing-tls","letsencrypt",` +
		`"Certificate is up to date and has not expired","288d"]}`)
	b.Run("jsontext", func(b *testing.B) {
		for b.Loop() {
			if err := new(Row).UnmarshalJSON(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reflection", func(b *testing.B) {
		for b.Loop() {
			if err := utiljson.Unmarshal(text, new(rowWithoutUnmarshaler)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
