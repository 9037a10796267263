package query

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"io"
	"strconv"
)

// token leads to what comes behind a place in the order of the objects.
type token struct {
	place
	// query is a sum over the query and its order.
	query uint64
	set   bool
}

// wireToken is the form of a token. Values are bytes, because keys of indexes need not be text; null stands
// for an object without one.
type wireToken struct {
	Values []*[]byte `json:"v,omitempty"`
	Key    string    `json:"k"`
	Query  uint64    `json:"q"`
}

// sum tells queries apart: those of different texts, and those whose operands have no text. Among which
// objects they are asked makes no difference.
func sum(query Query, options Options) uint64 {
	query = asked(query)
	h := fnv.New64a()
	write := func(part string) { _, _ = io.WriteString(h, strconv.Quote(part)) } // a hash takes everything
	write(query.String())
	for operand := range operands(query) {
		write(operand)
	}
	write(options.SortBy)
	write(strconv.FormatBool(options.Descending))
	return h.Sum64()
}

// write makes the text that people get.
func (t token) write(query Query, options Options) string {
	w := wireToken{Key: t.key, Query: sum(query, options)}
	for _, v := range t.values {
		var bytes *[]byte
		if v.present {
			b := []byte(v.key)
			bytes = &b
		}
		w.Values = append(w.Values, bytes)
	}
	data, _ := json.Marshal(w) // which has nothing that JSON has no form for
	return base64.RawURLEncoding.EncodeToString(data)
}

// readToken reads what write made. An empty text is the beginning. The order has some terms.
func readToken(text string, query Query, options Options, terms int) (token, error) {
	if text == "" {
		return token{}, nil
	}
	var w wireToken
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &w) != nil || w.Query != sum(query, options) ||
		len(w.Values) != terms {
		return token{}, ErrContinue
	}
	t := token{place: place{key: w.Key}, query: w.Query, set: true}
	for _, v := range w.Values {
		if v == nil {
			t.values = append(t.values, sortValue{})
			continue
		}
		t.values = append(t.values, sortValue{key: string(*v), present: true})
	}
	return t, nil
}
