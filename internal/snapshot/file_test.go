package snapshot_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// TestRoundTrip verifies that the objects of a file with several blocks can be read in order and by key.
func TestRoundTrip(t *testing.T) {
	const n = 3000
	f, err := open(snapshotOf(t, n))
	noError(t, err)
	contents := f.Contents()
	if contents.Tool != "test" || contents.Server.Host != "there" ||
		time.Since(contents.Created) > time.Hour {
		t.Errorf("Origin = %+v, want the tool and host of the writer", contents.Origin)
	}
	if len(contents.Types) != 2 || contents.Types[0].Missing.Message != "no" ||
		contents.Types[1].ResourceVersion != "17" {
		t.Fatalf("Types = %+v, want a missing one and one at version 17", contents.Types)
	}
	objects := f.Objects(gizmos.GVR().GroupResource())
	if objects.Blocks() < 2 || !objects.Ordered() {
		t.Errorf("Blocks() = %d, Ordered() = %v, want at least 2, true", objects.Blocks(), objects.Ordered())
	}
	i := 0
	for r, err := range objects.All {
		noError(t, err)
		want := string(gizmo("web", fmt.Sprintf("g-%06d", i), fmt.Sprintf("%0300d", i*7919)))
		if string(r.JSON) != want || r.Position != i {
			t.Fatalf("record %d at position %d is %s", i, r.Position, r.JSON)
		}
		other := strings.Replace(want, "example.com/v1", "example.com/v2", 1)
		if text := r.AppendWith(nil, `"example.com/v2"`); string(text) != other {
			t.Fatalf("AppendWith() = %s, want %s", text, other)
		}
		i++
	}
	if i != n {
		t.Errorf("%d objects, want %d", i, n)
	}
	for key, want := range map[string]bool{"web/g-000000": true, "web/g-001500": true, "web/g-002999": true,
		"web/g-003000": false, "a": false, "web/g-0015": false, "": false, "zoo": false} {
		if r, ok, err := objects.Get(key); ok != want || err != nil || ok && r.Key != key {
			t.Errorf("Get(%q) = %q, %v, %v, want %v", key, r.Key, ok, err, want)
		}
	}
	for _, r := range []struct {
		from, to string
		want     int
	}{{"", "", n}, {"web/g-000007", "", n - 7}, {"web/g-000007", "web/g-001500", 1493}, {"a", "b", 0}, {"zoo", "", 0},
		{"web/g-000001", "web/g-000002", 1}} {
		if got, err := objects.Count(r.from, r.to); got != r.want || err != nil {
			t.Errorf("Count(%q, %q) = %d, %v, want %d", r.from, r.to, got, err, r.want)
		}
		ranged := 0
		for record, err := range objects.Range(r.from, r.to) {
			if ranged++; err != nil || record.Key < r.from || r.to != "" && record.Key >= r.to {
				t.Errorf("Range(%q, %q) yields %s, %v", r.from, r.to, record.Key, err)
			}
		}
		if ranged != r.want {
			t.Errorf("Range(%q, %q) yields %d records, want %d", r.from, r.to, ranged, r.want)
		}
	}
	if f.Objects(schema.GroupResource{Resource: "pods"}) != nil {
		t.Error("Objects(pods) is not nil")
	}
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestObjects checks required fields, and the added apiVersion and kind.
func TestObjects(t *testing.T) {
	tests := map[string]struct{ object, want, fails string }{
		"both":       {`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a"}}`, "", ""},
		"in between": {`{"kind":"Gizmo", "apiVersion" : "example.com/v1" , "metadata":{"name":"a"}}`, "", ""},
		"last":       {`{"kind":"Gizmo","metadata":{"name":"a"},"apiVersion":"example.com/v1"}`, "", ""},
		"none": {` {"metadata":{"name":"a"}} `,
			`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a"}}`, ""},
		"no kind": {`{"apiVersion":"v1","metadata":{"name":"a"}}`,
			`{"apiVersion":"v1","kind":"Gizmo","metadata":{"name":"a"}}`, ""},
		"no version": {`{"metadata":{"name":"a"},"kind":"Gizmo"}`,
			`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a"}}`, ""},
		"another version": {`{"apiVersion":"example.com/v1beta1","kind":"Gizmo","metadata":{"name":"a"}}`, "", ""},
		"brackets in it": {`{"apiVersion":"v1","kind":"Gizmo","metadata":{"name":"a","annotations":{"x":"},{\""}}}`,
			"", ""},
		"twice": {`{"apiVersion":"v1","apiVersion":"v2","kind":"Gizmo","metadata":{"name":"a"}}`,
			`{"apiVersion":"v2","kind":"Gizmo","metadata":{"name":"a"}}`, ""},
		"no object":      {`[]`, "", "not a JSON object"},
		"null":           {`null`, "", "not a JSON object"},
		"nothing":        {``, "", "not a JSON object"},
		"truncated":      {`{"metadata":{"name":"a"}`, "", "not a JSON object"},
		"comma too many": {`{"metadata":{"name":"a"},}`, "", "not a JSON object"},
		"comma too few":  {`{"metadata":{"name":"a"} "x":1}`, "", "not a JSON object"},
		"something more": {`{"metadata":{"name":"a"}}{}`, "", "not a JSON object"},
		"wrong inside":   {`{"metadata":{"name":"a"},"x":{"y":tru}}`, "", "not a JSON object"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := snapshot.NewWriter(&out, snapshot.Origin{})
			section := w.BeginType(gizmos)
			err := section.Add([]byte(tt.object))
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) ||
					!strings.Contains(err.Error(), "gizmos: object 1") {
					t.Errorf("the error is %v, want one with the position", err)
				}
				return
			}
			noError(t, errors.Join(err, section.Close("1"), w.Commit()))
			f, err := open(out.Bytes())
			noError(t, err)
			r, ok, err := f.Objects(gizmos.GVR().GroupResource()).Get("a")
			if want := cmp.Or(tt.want, tt.object); !ok || err != nil || string(r.JSON) != want {
				t.Errorf("Get() = %s, %v, %v, want %s", r.JSON, ok, err, want)
			}
			if version := apiVersionOf(t, r.JSON); "example.com/"+r.Version != version && r.Version != version {
				t.Errorf("Version = %q, want that of %s", r.Version, r.JSON)
			}
		})
	}
}

// TestEveryFlippedBitIsFound verifies that a file with one flipped bit is rejected or has the same content.
func TestEveryFlippedBitIsFound(t *testing.T) {
	text := snapshotOf(t, 20)
	f, err := open(text)
	noError(t, err)
	want, err := readAll(f)
	noError(t, err)
	for i := range text {
		for bit := range 8 {
			flipped := slices.Clone(text)
			flipped[i] ^= 1 << bit
			f, err := open(flipped)
			if err != nil {
				continue
			}
			got, err := readAll(f)
			if err == nil && !gocmp.Equal(want, got) {
				t.Fatalf("bit %d of byte %d was flipped, and the file has other content: %v", bit, i, got)
			}
			if err == nil {
				t.Fatalf("bit %d of byte %d was flipped without an error", bit, i)
			}
		}
	}
}

// TestOtherFormatVersion verifies that a file of another version is rejected with the remedy.
func TestOtherFormatVersion(t *testing.T) {
	text := snapshotOf(t, 1)
	binary.LittleEndian.PutUint16(text[8:], 9)
	snapshot.SealHeader(text)
	if _, err := open(text); err == nil ||
		!strings.Contains(err.Error(), "version 9, this program reads version 5: use the program") {
		t.Errorf("the error is %v, want the version and the remedy", err)
	}
}

// TestAbort verifies that an aborted writer leaves no file, and does not change an existing one.
func TestAbort(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.snapshot")
	noError(t, os.WriteFile(path, []byte("earlier"), 0o600))
	w, err := snapshot.Create(path, snapshot.Origin{})
	noError(t, err)
	section := w.BeginType(gizmos)
	noError(t, section.Add(gizmo("a", "b", "")))
	w.Abort()
	if err := section.Close("1"); err == nil {
		t.Error("Close() of a section after Abort succeeded, want an error")
	}
	if err := w.Commit(); err == nil {
		t.Error("Commit() after Abort succeeded, want an error")
	}
	entries, err := os.ReadDir(dir)
	text, _ := os.ReadFile(path)
	if err != nil || len(entries) != 1 || string(text) != "earlier" {
		t.Errorf("the folder has %v with the text %q, %v, want the earlier file", entries, text, err)
	}
}

// TestCommit verifies that Commit replaces an existing file. Only the owner can read the new one.
func TestCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.snapshot")
	for i := range 2 {
		w, err := snapshot.Create(path, snapshot.Origin{Tool: fmt.Sprint(i)})
		if err == nil {
			err = w.Commit()
		}
		w.Abort()
		noError(t, err)
	}
	f, err := snapshot.Open(path)
	noError(t, err)
	defer f.Close()
	info, err := os.Stat(path)
	if err != nil || f.Contents().Tool != "1" || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the tool %v and the mode %v, %v, want 1, 0600", f.Contents().Tool, info.Mode(),
			err)
	}
}

// limitedWriter is a writer that returns an error after remaining bytes.
type limitedWriter struct{ remaining int }

var errFull = errors.New("no space left on device")

func (d *limitedWriter) Write(p []byte) (int, error) {
	if d.remaining -= len(p); d.remaining < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestFullDisk verifies that the writer returns the first write error, early or late.
func TestFullDisk(t *testing.T) {
	noise := rand.NewChaCha8([32]byte{})
	for name, objects := range map[string]int{"at the end": 1, "before": 200} {
		w := snapshot.NewWriter(&limitedWriter{100}, snapshot.Origin{})
		section := w.BeginType(gizmos)
		var err error
		for i := 0; i < objects && err == nil; i++ {
			text := make([]byte, 8<<10)
			_, _ = noise.Read(text) // never returns an error
			err = section.Add(gizmo("a", fmt.Sprintf("%05d", i), fmt.Sprintf("%x", text)))
		}
		if failed := err != nil; failed != (name == "before") {
			t.Errorf("%s: Add() = %v, want an error: %v", name, err, name == "before")
		}
		if err = errors.Join(err, section.Close(""), w.Commit()); !errors.Is(err, errFull) {
			t.Errorf("%s: the errors are %v, want errFull", name, err)
		}
	}
}

// TestTruncatedFile verifies that reading a file truncated anywhere returns a FormatError.
func TestTruncatedFile(t *testing.T) {
	text := snapshotOf(t, 20)
	for n := range text {
		_, err := open(text[:n])
		var format *block.FormatError
		if !errors.As(err, &format) && !errors.Is(err, block.ErrMagic) {
			t.Fatalf("truncated to %d bytes: %v, want a FormatError", n, err)
		}
		if n >= 8 && errors.Is(err, block.ErrMagic) {
			t.Fatalf("truncated to %d bytes: ErrNotSnapshot, want a FormatError", n)
		}
	}
}

// TestInvalidIndex verifies that an invalid index is rejected.
func TestInvalidIndex(t *testing.T) {
	frame := snapshot.Frame(snapshot.RecordOf("a"))
	size := fmt.Sprint(len(frame))
	first := `{"at":32,"stored":` + size + `,"objects":1,"first":"a","last":"a"}`
	typ := `"version":"v1","resource":"gizmos","kind":"Gizmo"`
	tests := map[string]struct{ index, want string }{
		"sound": {`{"types":[{` + typ + `,"objects":1,"blocks":[` + first + `]}]}`, ""},
		"more in it": {`{"novelty":{"a":[1]},"types":[{` + typ + `,"shine":true,"objects":1,"blocks":[` +
			first + `]}]}`, ""},
		"requires more": {`{"requires":["ropes"]}`, "the file requires ropes"},
		"no JSON":       {`{`, "decode the index"},
		"no name":       {`{"types":[{"version":"v1"}]}`, "lacks a name"},
		"twice": {`{"types":[{` + typ + `,"unsorted":true,"objects":2,"blocks":[` + first + `,` + first + `]}]}`,
			"invalid position"},
		"repeated": {`{"types":[{` + typ + `,"objects":2,"blocks":[` + first + `,` + first + `]}]}`, "not in order"},
		"outside": {`{"types":[{` + typ + `,"objects":1,"blocks":[{"at":99999,"stored":` + size +
			`,"objects":1}]}]}`, "invalid position"},
		"negative": {`{"types":[{` + typ + `,"objects":1,"blocks":[{"at":-5,"stored":` + size +
			`,"objects":1}]}]}`, "invalid position"},
		"other number": {`{"types":[{` + typ + `,"objects":5,"blocks":[` + first + `]}]}`,
			"has 5 objects in the index and 1"},
		"far too many": {`{"types":[{` + typ + `,"objects":9999999,"blocks":[{"at":32,"stored":` + size +
			`,"objects":9999999}]}]}`, "invalid block of 9999999 objects"},
		"missing and not": {`{"types":[{` + typ + `,"objects":1,"missing":{},"blocks":[` + first + `]}]}`,
			"is marked as missing, but has objects"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := open(snapshot.Assemble(frame, []byte(tt.index)))
			if tt.want == "" {
				if err == nil {
					err = f.Verify(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
			var format *block.FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want a FormatError", err)
			}
		})
	}
}

// TestInvalidBlocks verifies that invalid blocks are rejected before they are decoded.
func TestInvalidBlocks(t *testing.T) {
	tests := map[string]struct {
		record []byte
		want   string
	}{
		"bomb":       {snapshot.Bomb(60 << 20), "a section of 62914560 bytes"},
		"other kind": {[]byte("X"), "not a record of objects"},
		"other key":  {snapshot.RecordOf("b"), "does not have the objects that the index says"},
		"two":        {snapshot.RecordOf("a", "b"), "does not have the objects that the index says"},
		"none":       {snapshot.RecordOf(), "does not have the objects"},
		"cut":        {snapshot.RecordOf("a")[:30], "a section has"},
		"no bodies":  {append([]byte("O"), snapshot.Section(0, 3, []byte("\x00\x00\x00"))...), "damaged"},
		"other head": {append(append([]byte("O"), snapshot.Section(0, 3, []byte("\x00\x7f\x00"))...),
			snapshot.Section(0, 0, nil)...), "damaged"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			frame := snapshot.Frame(tt.record)
			index := fmt.Sprintf(`{"types":[{"version":"v1","resource":"gizmos","kind":"Gizmo","objects":1,"blocks":[{"at":32,"stored":%d,"objects":1,"first":"a","last":"a"}]}]}`, len(frame))
			f, err := open(snapshot.Assemble(frame, []byte(index)))
			noError(t, err)
			if err := f.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "at byte 32: ") ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("Verify() = %v, want an error with the position", err)
			}
		})
	}
}
