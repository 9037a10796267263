package jsonpath

import "github.com/crdcache/crdcache/internal/jsontext"

// unquoted gives the text of a JSON string with its quotes. It allocates only for an encoded one.
func unquoted(raw []byte, encoded bool) []byte {
	if len(raw) < 2 {
		return []byte{}
	}
	text := raw[1 : len(raw)-1 : len(raw)-1]
	if encoded {
		return appendUnquoted(nil, text)
	}
	return text
}

// appendUnquoted appends the decoded text between the quotes of a JSON string. Broken UTF-8 and
// lone surrogates become U+FFFD, as in sigs.k8s.io/json. The text is valid, but it may have been
// overwritten since the scan, so nothing may go wrong for any other bytes.
func appendUnquoted(dst, text []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, len(text))
	}
	return jsontext.AppendText(dst, text)
}
