package capture

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/snapshot"
)

const (
	// mostObjects and fewestObjects are how many objects are asked for at a time, and pageBytes what a page
	// should have: a page is in memory.
	mostObjects, fewestObjects = 500, 10
	pageBytes                  = 4 << 20
	// acceptTable asks for objects with the rows that the server prints, and takes a list of a server that
	// prints none.
	acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	acceptList  = "application/json"
)

// Reader reads lists of an API server.
type Reader struct {
	// Client reads any path.
	Client rest.Interface
	// Namespace is the only one that is read; empty for all.
	Namespace string
}

// Page is a part of a list.
type Page struct {
	// Version is the resource version that all pages of a list have.
	Version string
	// Columns are those of the rows; none without rows.
	Columns []metav1.TableColumnDefinition
	Items   []Item
}

// Item is an object in JSON, with its row if there is one.
type Item struct {
	Object json.RawMessage
	Cells  []json.RawMessage
	// key and created are those of the object, for one with a row.
	key     string
	created time.Time
}

// list is a list or a table as a server sends it.
type list struct {
	Kind     string                         `json:"kind"`
	Metadata metav1.ListMeta                `json:"metadata"`
	Items    []json.RawMessage              `json:"items"`
	Columns  []metav1.TableColumnDefinition `json:"columnDefinitions"`
	Rows     []struct {
		Cells  []json.RawMessage `json:"cells"`
		Object json.RawMessage   `json:"object"`
	} `json:"rows"`
}

// Pages lists a type, with rows if printed is set, until the first error. All pages are of the same moment:
// when the server cannot go on with the list the error is that it is gone (410), and what came is no part of
// any other list.
func (r *Reader) Pages(ctx context.Context, of discovery.Resource, printed bool) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		next, limit, version := "", fewestObjects, ""
		for {
			body, err := bodyOf(r.request(of, printed, limit, next).Do(ctx))
			if err != nil {
				yield(nil, err)
				return
			}
			var read list
			if err := json.Unmarshal(body, &read); err != nil {
				yield(nil, fmt.Errorf("the list of %s is no JSON: %w", of.GVR.GroupResource(), err))
				return
			}
			page, err := read.page()
			if err == nil && version != "" && page.Version != version {
				err = apierrors.NewResourceExpired(
					fmt.Sprintf("the list of %s went on at another resource version", of.GVR.GroupResource()))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if next == "" && read.Metadata.Continue != "" && limit < mostObjects && !page.ordered() {
				// the server prints a page in an order of its own, which should be that of all
				limit = mostObjects
				continue
			}
			version = page.Version
			if next = read.Metadata.Continue; !yield(page, nil) || next == "" {
				return
			}
			if len(page.Items) > 0 {
				limit = min(max(pageBytes/(len(body)/len(page.Items)+1), fewestObjects), mostObjects)
			}
		}
	}
}

// request asks for a page.
func (r *Reader) request(of discovery.Resource, printed bool, limit int, next string) *rest.Request {
	path := []string{"api", of.GVR.Version}
	if of.GVR.Group != "" {
		path = []string{"apis", of.GVR.Group, of.GVR.Version}
	}
	request := r.Client.Get().AbsPath(path...).Param("limit", strconv.Itoa(limit)).SetHeader("Accept",
		acceptList)
	if printed {
		request = request.SetHeader("Accept", acceptTable).Param("includeObject",
			string(metav1.IncludeObject))
	}
	if r.Namespace != "" && of.Scope == discovery.Namespaced {
		request = request.Namespace(r.Namespace)
	}
	if next != "" {
		request = request.Param("continue", next)
	}
	return request.Resource(of.GVR.Resource)
}

// bodyOf is what the server answered. Where it refused, Error reads its words, and Raw does not.
func bodyOf(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// page is what a list has.
func (l *list) page() (*Page, error) {
	page := &Page{Version: l.Metadata.ResourceVersion}
	if l.Kind != "Table" {
		for _, item := range l.Items {
			page.Items = append(page.Items, Item{Object: item})
		}
		return page, nil
	}
	page.Columns = l.Columns
	for _, row := range l.Rows {
		var about metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object, &about); err != nil {
			return nil, fmt.Errorf("a row of the server's table has no object: %w", err)
		}
		key := about.Namespace + "/" + about.Name
		page.Items = append(page.Items, Item{Object: row.Object, Cells: row.Cells, key: key,
			created: about.CreationTimestamp.Time})
	}
	return page, nil
}

// ordered reports whether the items are in the order of their keys, as far as those are known.
func (p *Page) ordered() bool {
	return slices.IsSortedFunc(p.Items, func(a, b Item) int { return strings.Compare(a.key, b.key) })
}

// row is the row of an item as files have it.
func (p *Page) row(i Item) ([]byte, error) { return snapshot.Cells(p.Columns, i.Cells, i.created) }
