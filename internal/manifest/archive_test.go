package manifest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// member is a file in an archive. A target makes it a symbolic link.
type archiveMember struct{ name, text, target string }

func tarOf(t testing.TB, members ...archiveMember) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		header := &tar.Header{Name: m.name, Mode: 0o600, Size: int64(len(m.text)), Typeflag: tar.TypeReg}
		if m.target != "" {
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, m.target, 0
		}
		if strings.HasSuffix(m.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, members ...archiveMember) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		header := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		header.SetMode(0o600)
		if m.target != "" {
			header.SetMode(fs.ModeSymlink | 0o600)
		}
		f, err := w.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// withMembers is describeEntries with the member of each entry.
func withMembers(t testing.TB, r io.Reader) []string {
	t.Helper()
	var got []string
	if err := Read(t.Context(), r, func(e Entry) bool {
		text := e.Kind
		if e.Err != nil {
			text = e.Err.Error()
		}
		got = append(got, location("f", e.Position)+" "+text)
		return true
	}); err != nil {
		got = append(got, "failed: "+err.Error())
	}
	return got
}

// TestArchives verifies that each form of an archive gives the objects of its members, also within another.
func TestArchives(t *testing.T) {
	members := []archiveMember{
		{"must-gather/", "", ""}, {"./must-gather/a.yaml", aYAML + "---\n" + bYAML, ""},
		{"must-gather/b.json.gz", string(gzipOf([]byte(aJSON))), ""}, {"x/../../../up.yml", bYAML, ""},
		{"logs/current.log", "starting\n", ""}, {"._a.yaml", "\x00\x05", ""}, {"link.yaml", "", "/etc/passwd"},
		{"bad.yaml", "a: b: c\n", ""}, {"values.yaml", "a: b\n", ""}, {"old.yaml", "\xfd7zXZ\x00\x00", ""},
	}
	want := []string{
		"f/must-gather/a.yaml:1 A", "f/must-gather/a.yaml:6 B", "f/must-gather/b.json.gz:1 A", "f/up.yml:1 B",
		"f/bad.yaml:1 not valid YAML: mapping values are not allowed in this context",
		"f/values.yaml:1 not a Kubernetes object: it has no apiVersion or no kind", "f/old.yaml this is an xz file: unpack it",
		"f not read: 1 files with other names than .yaml, .yml, .json, .jsonl, .tar, .tgz, .zip; 1 links",
	}
	plain, zipped := tarOf(t, members...), zipOf(t, members...)
	zstdWriter, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	inner := archiveMember{"inner/nested.tgz", string(gzipOf(plain)), ""}
	var nested []string
	for _, text := range want[:len(want)-1] {
		nested = append(nested, strings.Replace(text, "f/", "f/inner/nested.tgz/", 1))
	}
	nested = append(nested, want[len(want)-1])
	tests := map[string]struct {
		data []byte
		want []string
	}{
		"tar": {plain, want}, "tar.gz": {gzipOf(plain), want}, "tar.zst": {zstdWriter.EncodeAll(plain, nil), want},
		"zip": {zipped, want}, "zip.gz": {gzipOf(zipped), want},
		"nested in tar": {tarOf(t, inner), nested}, "nested in zip": {zipOf(t, inner), nested},
		"nested twice": {tarOf(t, archiveMember{"x.zip", string(zipOf(t, inner)), ""}),
			[]string{"f/x.zip/inner/nested.tgz " + errTooDeep.Error()}},
		"no members": {tarOf(t), []string{"f this has only zero bytes: it is damaged, or an archive without files"}}, "no members in zip": {zipOf(t), []string{"f " + errEmpty.Error()}},
		"two archives": {append(bytes.Clone(plain), plain...), append(append([]string{}, want...), "failed: "+errTrailing.Error())},
		"many names": {tarOf(t, archiveMember{strings.Repeat("a/", 3000) + "a.yaml", aYAML, ""}),
			[]string{"f not read: 1 files with other names than .yaml, .yml, .json, .jsonl, .tar, .tgz, .zip"}},
	}
	for name, tt := range tests {
		readers := map[string]io.Reader{"a file": bytes.NewReader(tt.data),
			"a stream": iotest.HalfReader(bytes.NewReader(tt.data))}
		for source, r := range readers {
			got := withMembers(t, r)
			if strings.HasPrefix(name, "two") && len(got) == len(tt.want) {
				got[len(got)-2], got[len(got)-1] = tt.want[len(got)-2], tt.want[len(got)-1]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s as %s (-want +got):\n%s", name, source, diff)
			}
		}
	}
	for name, data := range map[string][]byte{"tar": plain, "tar.gz": gzipOf(plain), "zip": zipped} {
		for _, size := range []int{len(data) / 4, len(data) / 2, len(data) * 3 / 4} {
			got := withMembers(t, bytes.NewReader(data[:size]))
			if len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), "failed: ") {
				t.Errorf("%s, truncated to %d bytes: %q, want an error", name, size, got)
			}
		}
	}
}

// TestArchiveBounds verifies that small archives of very much data are rejected.
func TestArchiveBounds(t *testing.T) {
	comments := strings.Repeat("# c\n", 1<<18)
	inner := archiveMember{"a.yaml.gz", string(gzipOf([]byte(comments))), ""}
	for name, data := range map[string][]byte{
		"gzip": gzipOf([]byte(comments)), "tar": tarOf(t, inner), "tar.gz": gzipOf(tarOf(t, inner)),
		"zip":    zipOf(t, archiveMember{"a.yaml", comments, ""}),
		"nested": zipOf(t, archiveMember{"a.tgz", string(gzipOf(tarOf(t, inner))), ""}),
	} {
		c := &contentReader{ctx: t.Context(), yield: func(e Entry) bool { t.Error(name, e); return true },
			archiveCounts: &archiveCounts{decompressedSize: freeSize}}
		if err := c.read(bytes.NewReader(data)); !errors.Is(err, errRatio) {
			t.Errorf("%s: error %v, want %v", name, err, errRatio)
		}
	}
}

// TestBinary verifies that binary files are named.
func TestBinary(t *testing.T) {
	for data, want := range map[string]string{
		"BZh91AY": "a bzip2 file", strings.Repeat("\x00", 16) + "\xed\xda\x0c\xed\x02": "an etcd database",
		"k\x00i\x00n\x00d\x00": "UTF-16 without", "\x00k\x00i\x00n\x00d": "UTF-16 without", "abc\x00\x01\x02": "a binary file",
		"k8s\x00\n\x0c": "Protobuf",
	} {
		got := describeEntries(t, strings.NewReader(data))
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%q: %q, want %s", data, got, want)
		}
	}
}

// compressed returns a text compressed with gzip and zstd.
func compressed(t *testing.T, text string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	write := func(name string, w io.WriteCloser, to *bytes.Buffer) {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out[name] = to.Bytes()
	}
	var a, b bytes.Buffer
	write("gzip", gzip.NewWriter(&a), &a)
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	write("zstd", w, &b)
	return out
}

func TestCompressed(t *testing.T) {
	want := []string{"1 1/0: v1 A a", "6 2/0: v1 B b"}
	for name, data := range compressed(t, aYAML+"---\n"+bYAML) {
		if diff := cmp.Diff(want, describeEntries(t, bytes.NewReader(data))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		// Two compressed members are read as one text.
		double := io.MultiReader(bytes.NewReader(data), bytes.NewReader(data))
		if got := describeEntries(t, double); len(got) != 3 ||
			!strings.Contains(got[2], "v1 B b") {
			t.Errorf("%s, two members: got %q", name, got)
		}
	}
}

// TestDamaged verifies that truncated or damaged compressed data is an error.
func TestDamaged(t *testing.T) {
	object := func(i int) string {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"A","metadata":{"name":"a%d"},"data":"%x"}`, i, sum)
	}
	var lines, list, documents strings.Builder
	list.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	for i := range 2000 {
		lines.WriteString(object(i) + "\n")
		documents.WriteString("---\napiVersion: v1\nkind: A\nspec: " + object(i) + "\n")
		list.WriteString(object(i) + ",")
	}
	list.WriteString(object(2000) + "]}")
	for of, text := range map[string]string{"lines": lines.String(), "list": list.String(),
		"documents": documents.String()} {
		for by, data := range compressed(t, text) {
			damaged := bytes.Clone(data)
			damaged[len(damaged)/2] ^= 0xff
			for how, data := range map[string][]byte{"cut": data[:len(data)/2], "damaged": damaged} {
				got := describeEntries(t, bytes.NewReader(data))
				if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "failed: ") {
					t.Errorf("%s, %s, %s: %d entries, of which the last is %q; want an error", of, by, how,
						len(got),
						got[max(0, len(got)-1):])
				}
			}
		}
	}
}

// TestWindowBound verifies that data is rejected if its decompression needs gigabytes of memory.
func TestWindowBound(t *testing.T) {
	// This is the header of a frame with a window of 2 GiB.
	if got := describeEntries(t, strings.NewReader("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00")); len(got) != 1 ||
		!strings.Contains(got[0], "window size") {
		t.Errorf("reading the frame returned %q, want an error about the window size", got)
	}
}
