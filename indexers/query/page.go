package query

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"io"
	"strconv"
)

// token is a place in the order of the objects: behind one object.
type token struct {
	// Value is the key in the index that is sorted by, Rest is set behind all that have one.
	Value string `json:"-"`
	Rest  bool   `json:"r,omitempty"`
	// Key is the object's.
	Key string `json:"k"`
	// Bytes carry Value, which need not be text.
	Bytes []byte `json:"v,omitempty"`
	// Query is a sum over the query and its order.
	Query uint64 `json:"q"`

	set bool
}

// sum tells queries apart.
func sum(query Query, options Options) uint64 {
	h := fnv.New64a()
	for _, part := range []string{query.String(), options.SortBy, strconv.FormatBool(options.Descending)} {
		_, _ = io.WriteString(h, strconv.Quote(part)) // a hash takes everything
	}
	return h.Sum64()
}

// write makes the text that people get.
func (t token) write(query Query, options Options) string {
	t.Bytes, t.Query = []byte(t.Value), sum(query, options)
	data, _ := json.Marshal(t) // which has nothing that JSON has no form for
	return base64.RawURLEncoding.EncodeToString(data)
}

// readToken reads what write made. An empty text is the beginning.
func readToken(text string, query Query, options Options) (token, error) {
	if text == "" {
		return token{}, nil
	}
	var t token
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &t) != nil || t.Query != sum(query, options) {
		return token{}, ErrContinue
	}
	t.Value, t.set = string(t.Bytes), true
	return t, nil
}
