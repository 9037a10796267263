package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/readapi"
)

// merging is the lists of parts as they become one. Of what it has the most is the present item of each part, and a chunk of the
// answer; a page, where what it says of itself comes before its items.
type merging struct {
	*merge
	w     http.ResponseWriter
	lists []*itemReader
	buf   []byte
	begun bool // something has been written
	// last is the key of the last item, count how many there were, and left how many of those that came were too many.
	last        string
	count, left int64
}

// write puts the lists together.
func (m *merge) write(w http.ResponseWriter, answers []*http.Response) error {
	g := &merging{merge: m, w: w}
	for i, answer := range answers {
		list, err := newItemReader(answer.Body)
		if err != nil {
			return m.unanswered(m.of.parts[i], err)
		}
		g.lists = append(g.lists, list)
	}
	if err := g.agree(); err != nil {
		return err
	}
	copyHeaders(w, answers[0].Header)
	if info := m.info(); info != nil {
		w.Header().Set(ShardHeader, info.Selector)
	}
	err := g.run()
	if err == nil {
		err = g.flush()
	}
	if err != nil && g.begun {
		// All that is left is to cut the answer, so that nobody takes it for whole.
		panic(http.ErrAbortHandler)
	}
	return err
}

// errHeads says that parts do not mean the same by a row.
var errHeads = errors.New("the list has another kind or other columns, as while a definition changes")

// agree refuses lists that differ in what comes before their items but for the metadata, such as the columns of a table.
func (g *merging) agree() error {
	first := g.lists[0].head()
	for i, list := range g.lists {
		if !slices.EqualFunc(first, list.head(), func(a, b member) bool { return a.name == b.name && bytes.Equal(a.value, b.value) }) {
			return g.unanswered(g.of.parts[i], errHeads)
		}
	}
	return nil
}

// info says which shard the client has asked for; nil for none.
func (m *merge) info() *metav1.ShardInfo {
	if m.of.text == "" {
		return nil
	}
	selector, err := readapi.ParseShardSelector(m.of.text)
	if err != nil {
		return nil // it has been parsed before
	}
	return &metav1.ShardInfo{Selector: selector.String()}
}

// run writes the list, in the form in which the first part has it.
func (g *merging) run() error {
	first := g.lists[0]
	leading := first.members[:first.leading]
	var page []byte
	held := g.limit > 0 && g.structs()
	if held { // how it goes on has to be known before
		if err := g.items(false); err != nil {
			return err
		}
		page, g.buf = g.buf, nil
	}
	g.buf = append(g.buf, '{')
	for _, m := range leading {
		if err := g.member(m); err != nil {
			return err
		}
		g.buf = append(g.buf, ',')
	}
	g.buf = append(append(append(g.buf, '"'), first.name...), `":[`...)
	if g.buf = append(g.buf, page...); !held {
		if err := g.items(true); err != nil {
			return err
		}
	}
	g.buf = append(g.buf, ']')
	for _, m := range first.members[first.leading:] {
		g.buf = append(g.buf, ',')
		if err := g.member(m); err != nil {
			return err
		}
	}
	g.buf = append(g.buf, "}\n"...)
	return nil
}

// member appends a member of the list.
func (g *merging) member(m member) error {
	if m.name == "metadata" {
		var err error
		if m.value, err = g.metadata(); err != nil {
			return err
		}
	}
	name, err := json.Marshal(m.name)
	g.buf = append(append(append(g.buf, name...), ':'), m.value...)
	return err
}

// items appends the items of all parts by key, as many as are wanted, and reads the lists to their ends.
func (g *merging) items(flushes bool) error {
	for list := g.least(); list != nil && (g.limit == 0 || g.count < g.limit); list = g.least() {
		if g.count > 0 && list.key <= g.last {
			return errUnavailable("two servers have %s, or one has it out of order", list.key)
		}
		if g.count > 0 {
			g.buf = append(g.buf, ',')
		}
		g.count++
		g.last = list.key
		if g.buf = append(g.buf, list.item...); flushes && len(g.buf) >= chunk {
			if err := g.flush(); err != nil {
				return err
			}
		}
		if err := g.next(list); err != nil {
			return err
		}
	}
	for _, list := range g.lists {
		for list.item != nil {
			g.left++
			if err := g.next(list); err != nil {
				return err
			}
		}
	}
	return nil
}

// least returns the list whose present item comes first; nil after the last.
func (g *merging) least() *itemReader {
	var least *itemReader
	for _, list := range g.lists {
		if list.item != nil && (least == nil || list.key < least.key) {
			least = list
		}
	}
	return least
}

// next reads the item after the present one of a list.
func (g *merging) next(list *itemReader) error {
	if err := list.next(); err != nil {
		return g.unanswered(g.of.parts[slices.Index(g.lists, list)], err)
	}
	return nil
}

// flush writes what there is.
func (g *merging) flush() error {
	g.begun = true
	return g.server.write(g.w, &g.buf)
}

// listMetadata is that of a list as API servers write it where objects are maps. Where they are structs, it is a ListMeta.
type listMetadata struct {
	Continue  *string           `json:"continue"`
	Remaining *int64            `json:"remainingItemCount,omitempty"`
	Version   string            `json:"resourceVersion"`
	Shard     *metav1.ShardInfo `json:"shardInfo,omitempty"`
}

// errVersions says that parts have answered what they were not asked for.
var errVersions = errors.New("the list is not of the version, or not of the length, that it was asked for")

// metadata returns that of the whole list.
func (g *merging) metadata() ([]byte, error) {
	var first listMetadata
	maps := false
	remaining, known, more := g.left, true, g.left > 0
	for i, list := range g.lists {
		var one listMetadata
		at := slices.IndexFunc(list.members, func(m member) bool { return m.name == "metadata" })
		if at < 0 {
			return nil, g.unanswered(g.of.parts[i], errNoList)
		}
		if err := json.Unmarshal(list.members[at].value, &one); err != nil {
			return nil, g.unanswered(g.of.parts[i], err)
		}
		if i == 0 {
			first, maps = one, bytes.HasPrefix(list.members[at].value, []byte(`{"continue":`))
		}
		goesOn := one.Continue != nil && *one.Continue != ""
		if one.Version != first.Version || goesOn && g.limit == 0 {
			return nil, g.unanswered(g.of.parts[i], errVersions)
		}
		if goesOn {
			more = true
			if known = known && one.Remaining != nil; known {
				remaining += *one.Remaining
			}
		}
	}
	meta := metav1.ListMeta{ResourceVersion: first.Version, ShardInfo: g.info()}
	if more {
		version, err := strconv.ParseInt(first.Version, 10, 64)
		if err != nil {
			return nil, err
		}
		meta.Continue = readapi.NewContinueToken(version, g.namespace, g.last)
		if known {
			meta.RemainingItemCount = &remaining
		}
	}
	if maps {
		return json.Marshal(listMetadata{&meta.Continue, meta.RemainingItemCount, meta.ResourceVersion, meta.ShardInfo})
	}
	return json.Marshal(meta)
}

// structs reports whether the metadata of the list comes before its items, as where these are structs.
func (g *merging) structs() bool {
	first := g.lists[0]
	return slices.ContainsFunc(first.members[:first.leading], func(m member) bool { return m.name == "metadata" })
}
