package manifest

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// inUTF16 encodes a text with the mark that says so.
func inUTF16(order binary.AppendByteOrder, text string) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// TestUTF16 reads what PowerShell makes of the output of kubectl.
func TestUTF16(t *testing.T) {
	windows := strings.NewReplacer("\n", "\r\n")
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"yaml": {windows.Replace(aYAML + "---\n" + bYAML), []string{"1 1/0: v1 A a", "6 2/0: v1 B b"}},
		"json": {windows.Replace(aJSON + "\n" + bJSON), []string{"1 1/0: v1 A a", "2 2/0: v1 B b"}},
		"names": {"{apiVersion: v1, kind: Ä, metadata: {name: 🐙}}\n---\n" + strings.Repeat("# 🐙\n", 5000) + aYAML,
			[]string{"1 1/0: v1 Ä 🐙", "5003 2/0: v1 A a"}},
	} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			text := inUTF16(order, tt.text)
			for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
				if diff := cmp.Diff(tt.want, described(t, r)); diff != "" {
					t.Errorf("%s, %v (-want +got):\n%s", name, order, diff)
				}
			}
		}
	}
}

// TestDecodeUTF16 reads what is not text.
func TestDecodeUTF16(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"a":                        "a",
		"\xff":                     "\xff",
		"\xff\xfe":                 "",
		"\xff\xfea":                "\ufffd",
		"\xff\xfea\x00\x00":        "a\ufffd",
		"\xfe\xff\xd8\x3d":         "\ufffd",
		"\xfe\xff\xd8\x3d\xd8":     "\ufffd\ufffd",
		"\xfe\xff\xd8\x3d\x00a":    "\ufffda",
		"\xfe\xff\xdc\x19\x00a":    "\ufffda",
		"\xfe\xff\xd8\x3d\xdc\x19": "🐙",
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.HalfReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			if got, err := io.ReadAll(iotest.OneByteReader(decodeUTF16(r))); err != nil || string(got) != want {
				t.Errorf("%q: %q, %v; want %q", text, got, err, want)
			}
		}
	}
}
