package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
)

const (
	maxFound = 20
	// contentTime limits the search in the contents of objects, unless the request has "all".
	contentTime = time.Second
	maxSnippet  = 120
)

// searchAnswer has the best results: names, values of indexes, and values in objects.
type searchAnswer struct {
	Names []foundName `json:"names"`
	// MoreNames is the number of other objects with matching names.
	MoreNames int            `json:"moreNames,omitempty"`
	Values    []foundValue   `json:"values"`
	Contents  []foundContent `json:"contents"`
	// Searched is the number of Objects whose content was searched; the search ends when it has enough
	// results.
	Searched int `json:"searched"`
	Objects  int `json:"objects"`
}

type foundName struct {
	Type string `json:"type"`
	Key  string `json:"key"`
}

// foundValue is a value of an index, with the query for its objects.
type foundValue struct {
	Type  string `json:"type"`
	Index string `json:"index"`
	valueCount
}

// foundContent is a value in an object.
type foundContent struct {
	Type string `json:"type"`
	Key  string `json:"key"`
	Path string `json:"path"`
	Text string `json:"text"`
}

// search finds a text in the visible objects of all types, or of one namespace.
type search struct {
	h         *Handler
	ctx       context.Context
	text      string // in lower case
	namespace string
	types     []*visibleType
	answer    searchAnswer
}

func (h *Handler) search(r *http.Request) (any, error) {
	s := &search{h: h, ctx: r.Context(), text: strings.ToLower(strings.TrimSpace(r.FormValue("text"))),
		namespace: r.FormValue("namespace")}
	s.answer = searchAnswer{Values: []foundValue{}, Contents: []foundContent{}}
	if s.text == "" || len(s.text) > maxSnippet {
		return nil, errors.New("search for 1 to 120 bytes of text")
	}
	types, err := h.scopedTypes(r)
	if err != nil {
		return nil, err
	}
	s.types = slices.DeleteFunc(types, func(k *visibleType) bool { return k.scope.empty() })
	s.findNames()
	if err := s.findValues(); err != nil {
		return nil, err
	}
	s.findContents(time.Now().Add(contentTime), r.FormValue("all") != "")
	return s.answer, context.Cause(r.Context())
}

func (s *search) allows(k *visibleType, key string) bool {
	return k.scope.allows(key) && (s.namespace == "" || strings.HasPrefix(key, s.namespace+"/"))
}

// findNames finds objects whose namespace and name contain all words. Equal names come first, then names that
// begin with the text.
func (s *search) findNames() {
	words := strings.Fields(s.text)
	var ranked [3][]foundName
	found := 0
	for _, k := range s.types {
		for key := range k.informer.Snapshot().AllStored() {
			if s.ctx.Err() != nil || !s.allows(k, key) {
				continue
			}
			s.answer.Objects++
			lower := strings.ToLower(key)
			if !containsAll(lower, words) {
				continue
			}
			found++
			rank, name := 2, lower[strings.IndexByte(lower, '/')+1:]
			if name == s.text || lower == s.text {
				rank = 0
			} else if strings.HasPrefix(name, s.text) {
				rank = 1
			}
			if len(ranked[rank]) < maxFound {
				ranked[rank] = append(ranked[rank], foundName{k.id, strings.Clone(key)})
			}
		}
	}
	all := slices.Concat(ranked[:]...)
	s.answer.Names = append([]foundName{}, all[:min(len(all), maxFound)]...)
	s.answer.MoreNames = found - len(s.answer.Names)
}

// findValues finds values of indexes, the most frequent first.
func (s *search) findValues() error {
	within := query.All()
	if s.namespace != "" {
		within = query.Namespace(s.namespace)
	}
	for _, k := range s.types {
		if s.h.hidesValues(k) {
			continue
		}
		for _, i := range k.Indexes {
			counts, err := s.h.evaluator(k).values(s.ctx, i.Name, within)
			if s.ctx.Err() != nil {
				return context.Cause(s.ctx)
			}
			if err != nil {
				continue // the index is being built
			}
			for _, c := range counts {
				if text := valueText(c); c.Count > 0 && strings.Contains(strings.ToLower(text), s.text) {
					s.answer.Values = append(s.answer.Values, foundValue{k.id, i.Name,
						valueCount{Text: text, Query: conditionFor(i.Name, c.Parts), Count: c.Count}})
				}
			}
		}
	}
	slices.SortStableFunc(s.answer.Values, func(a, b foundValue) int { return cmp.Compare(b.Count, a.Count) })
	s.answer.Values = s.answer.Values[:min(len(s.answer.Values), maxFound)]
	return nil
}

// findContents finds values in objects. It skips types with hidden values.
func (s *search) findContents(end time.Time, all bool) {
	plain := plainPart(s.text)
	var scratch []byte
	for _, k := range s.types {
		hidden := s.h.hidesValues(k)
		for key, object := range k.informer.Snapshot().AllStored() {
			if len(s.answer.Contents) == maxFound || s.ctx.Err() != nil || !all && time.Now().After(end) {
				return
			}
			if !s.allows(k, key) {
				continue
			}
			s.answer.Searched++
			if hidden || !mayContain(object, plain, &scratch) {
				continue
			}
			content := s.h.visibleContent(k.informer, object)
			if content == nil {
				continue
			}
			if path, text, ok := findText(content.Object, "", s.text); ok {
				s.answer.Contents = append(s.answer.Contents, foundContent{k.id, strings.Clone(key), path,
					snippet(text, s.text)})
			}
		}
	}
}

// plainPart returns the longest part of a text that is the same in JSON.
func plainPart(text string) string {
	longest := ""
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&/`, r)
	}) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// mayContain reports whether the JSON of an object contains a text in any case. It is fast, and wrong for
// names of fields.
func mayContain(object any, text string, scratch *[]byte) bool {
	packed, ok := object.(dynamicinformer.PackedObject)
	if !ok || text == "" {
		return true
	}
	found := true
	_ = packed.ReadJSON(func(json []byte) error { // a damaged object is decoded as far as possible
		lower := append((*scratch)[:0], json...)
		for i, c := range lower {
			if 'A' <= c && c <= 'Z' {
				lower[i] = c + 'a' - 'A'
			}
		}
		*scratch, found = lower, bytes.Contains(lower, []byte(text))
		return nil
	})
	return found
}

// findText returns the first value that contains a text, in the order of the fields. It does not search the
// name and namespace, and the names of field managers.
func findText(value any, path, text string) (at, found string, ok bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := joinPath(path, key)
			if slices.Contains([]string{".metadata.managedFields", ".metadata.name", ".metadata.namespace"}, below) {
				continue
			}
			if at, found, ok = findText(value[key], below, text); ok {
				return at, found, ok
			}
		}
	case []any:
		for i, element := range value {
			if at, found, ok = findText(element, joinPath(path, strconv.Itoa(i)), text); ok {
				return at, found, ok
			}
		}
	case nil:
	default:
		found = cellText(value)
		if s, isText := value.(string); isText {
			found = s
		}
		return path, found, strings.Contains(strings.ToLower(found), text)
	}
	return "", "", false
}

// snippet returns the part of a value around a text.
func snippet(value, text string) string {
	if len(value) <= maxSnippet {
		return value
	}
	at := min(max(0, strings.Index(strings.ToLower(value), text)-20), len(value)-1)
	part := strings.ToValidUTF8(value[at:min(len(value), at+maxSnippet)], "")
	if at > 0 {
		part = "…" + part
	}
	return part + "…"
}
