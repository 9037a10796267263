package snapshots

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/requests"
)

// A page has minPageSize to maxPageSize objects and about pageBytes bytes. This bounds the memory of a save.
const (
	maxPageSize, minPageSize = 500, 10
	pageBytes                = 4 << 20
)

type listPage struct {
	version string // resource version of the whole list
	items   []json.RawMessage
}

type list struct {
	Metadata metav1.ListMeta   `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
}

// decodeList decodes a page. encoding/json would scan the items twice and copy them: it only gets the rest.
func decodeList(body []byte) (l list, err error) {
	rest := body
	var items []json.RawMessage
	for m, err := range jsontext.Members(body) {
		isItems := strings.EqualFold(string(m.Key), "items")
		if err != nil || isItems && items != nil {
			err = json.Unmarshal(body, &l) // its error, and its meaning of a repeated key
			return l, err
		}
		if isItems && m.Value[0] == '[' {
			items = elementsOf(m.Value)
			rest = slices.Concat(body[:m.End-len(m.Value)], []byte("[]"), body[m.End:])
		}
	}
	err = json.Unmarshal(rest, &l)
	l.Items = append(l.Items, items...)
	return l, err
}

// elementsOf returns the elements of a valid array. They share its memory.
func elementsOf(array []byte) []json.RawMessage {
	elements := []json.RawMessage{}
	for i, closed := jsontext.EnterContainer(array, 0); !closed; {
		end, _, _ := jsontext.SkipValue(array, i)
		elements = append(elements, array[i:end])
		i, closed = jsontext.NextMember(array, end, ']')
	}
	return elements
}

// pages lists a type until the first error. All pages have the same resource version. If the server cannot
// continue the list, the error is 410 Gone, and the caller must discard the received pages.
func (s *snapshotSaver) pages(ctx context.Context,
	resource discovery.Resource) iter.Seq2[*listPage, error] {
	return func(yield func(*listPage, error) bool) {
		continueToken, limit, version := "", minPageSize, ""
		for {
			var body []byte
			pageCtx, cancel := s.target.WithTimeout(ctx)
			err := s.target.Retry(pageCtx, resource.GVR.GroupResource().String(), func() (err error) {
				body, err = print.BodyOf(s.pageRequest(resource, limit, continueToken).Do(pageCtx))
				return err
			})
			cancel()
			if err != nil {
				yield(nil, err)
				return
			}
			list, err := decodeList(body)
			if err != nil {
				yield(nil, fmt.Errorf("decode the list of %s: %w", resource.GVR.GroupResource(), err))
				return
			}
			page, err := list.page(body)
			if err == nil && version != "" && page.version != version {
				err = apierrors.NewResourceExpired(
					fmt.Sprintf("the list of %s continued at another resource version",
						resource.GVR.GroupResource()))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			version = page.version
			if continueToken = list.Metadata.Continue; !yield(page, nil) || continueToken == "" {
				return
			}
			if len(page.items) > 0 {
				limit = min(max(pageBytes/(len(body)/len(page.items)+1), minPageSize), maxPageSize)
			}
		}
	}
}

func (s *snapshotSaver) pageRequest(resource discovery.Resource, limit int,
	continueToken string) *rest.Request {
	request := print.ListRequest(s.client, resource, s.namespace).Param("limit", strconv.Itoa(limit))
	if continueToken != "" {
		request = request.Param("continue", continueToken)
	}
	return request
}

func (l *list) page(body []byte) (*listPage, error) {
	if empty := (unstructured.UnstructuredList{}); len(l.Items) == 0 {
		if err := empty.UnmarshalJSON(body); err != nil {
			return nil, fmt.Errorf("decode the list: %w", err)
		}
		if err := requests.CheckList(&empty); err != nil {
			return nil, err
		}
	}
	return &listPage{version: l.Metadata.ResourceVersion, items: slices.DeleteFunc(l.Items, isNull)}, nil
}

// isNull reports whether a list has no object at an item.
func isNull(item json.RawMessage) bool { return bytes.Equal(item, []byte("null")) }
