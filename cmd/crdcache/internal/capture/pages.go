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
	// A page has minPageSize to maxPageSize objects and about pageBytes bytes, because it is held in memory.
	maxPageSize, minPageSize = 500, 10
	pageBytes                = 4 << 20
	// acceptTable requests objects with table rows and accepts a list from servers without tables.
	acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	acceptList  = "application/json"
)

// Reader lists types of an API server.
type Reader struct {
	// Client can request any path.
	Client rest.Interface
	// Namespace limits the objects. Empty means all.
	Namespace string
}

// Page is a page of a list.
type Page struct {
	// Version is the resource version of the whole list.
	Version string
	// Columns are the columns of the rows. They are empty without rows.
	Columns []metav1.TableColumnDefinition
	Items   []Item
}

// Item is an object in JSON with its optional row.
type Item struct {
	Object json.RawMessage
	Cells  []json.RawMessage
	// key and created are set for items with a row.
	key     string
	created time.Time
}

// list is a list or a table from a server.
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

// Pages lists a type, with rows if printed is set, until the first error. All pages have the same resource
// version. If the server cannot continue the list, the error is 410 Gone, and the received pages must be
// discarded.
func (r *Reader) Pages(ctx context.Context, resource discovery.Resource, printed bool) iter.Seq2[*Page,
	error] {
	return func(yield func(*Page, error) bool) {
		next, limit, version := "", minPageSize, ""
		for {
			body, err := responseBody(r.request(resource, printed, limit, next).Do(ctx))
			if err != nil {
				yield(nil, err)
				return
			}
			var read list
			if err := json.Unmarshal(body, &read); err != nil {
				yield(nil, fmt.Errorf("decode the list of %s: %w", resource.GVR.GroupResource(), err))
				return
			}
			page, err := read.page()
			if err == nil && version != "" && page.Version != version {
				err = apierrors.NewResourceExpired(
					fmt.Sprintf("the list of %s continued at another resource version",
						resource.GVR.GroupResource()))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if next == "" && read.Metadata.Continue != "" && limit < maxPageSize && !page.isSorted() {
				// the server sorts each page, but the whole list should be sorted
				limit = maxPageSize
				continue
			}
			version = page.Version
			if next = read.Metadata.Continue; !yield(page, nil) || next == "" {
				return
			}
			if len(page.Items) > 0 {
				limit = min(max(pageBytes/(len(body)/len(page.Items)+1), minPageSize), maxPageSize)
			}
		}
	}
}

func (r *Reader) request(resource discovery.Resource, printed bool, limit int, next string) *rest.Request {
	path := []string{"api", resource.GVR.Version}
	if resource.GVR.Group != "" {
		path = []string{"apis", resource.GVR.Group, resource.GVR.Version}
	}
	request := r.Client.Get().AbsPath(path...).Param("limit", strconv.Itoa(limit)).SetHeader("Accept",
		acceptList)
	if printed {
		request = request.SetHeader("Accept", acceptTable).Param("includeObject",
			string(metav1.IncludeObject))
	}
	if r.Namespace != "" && resource.Scope == discovery.Namespaced {
		request = request.Namespace(r.Namespace)
	}
	if next != "" {
		request = request.Param("continue", next)
	}
	return request.Resource(resource.GVR.Resource)
}

// responseBody returns the body of an answer. Only Error decodes the status of a refused request.
func responseBody(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

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
		var metadata metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object, &metadata); err != nil {
			return nil, fmt.Errorf("a row of the server's table has no object: %w", err)
		}
		key := metadata.Namespace + "/" + metadata.Name
		page.Items = append(page.Items, Item{Object: row.Object, Cells: row.Cells, key: key,
			created: metadata.CreationTimestamp.Time})
	}
	return page, nil
}

// isSorted reports whether the items are sorted by key, if the keys are known.
func (p *Page) isSorted() bool {
	return slices.IsSortedFunc(p.Items, func(a, b Item) int { return strings.Compare(a.key, b.key) })
}

// row returns the row of an item in the form of snapshot files.
func (p *Page) row(i Item) ([]byte, error) { return snapshot.Cells(p.Columns, i.Cells, i.created) }
