package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/codec"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/requests"
)

// decoder is a way to decode JSON.
type decoder struct {
	object func(data []byte) error
	// list decodes the response to a list request, as the subject's client does, and returns the number of
	// items.
	list func(data []byte) (int, error)
}

func newDecoder(name string) (decoder, error) {
	stock := dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	switch name {
	case ClientGoLibrary:
		list, err := unstructuredListDecoder(stock)
		return decoder{list: list, object: func(data []byte) error {
			_, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
			return err
		}}, err
	case Crdcache:
		jsonDecoder := jsontext.NewDecoder()
		return decoder{
			object: func(data []byte) error {
				_, err := jsonDecoder.Decode(data)
				return err
			},
			list: func(data []byte) (int, error) {
				var list unstructured.UnstructuredList
				_ = requests.DecodeList(data, &list) // the number of items shows a failure
				return len(list.Items), nil
			},
		}, nil
	case CrdcachePack:
		return packingDecoder()
	default:
		return decoder{}, fmt.Errorf("there is no decoder %q", name)
	}
}

// unstructuredListDecoder returns a function that decodes a list with the JSON serializer of s, and returns
// the number of items.
func unstructuredListDecoder(s runtime.NegotiatedSerializer) (func([]byte) (int, error), error) {
	info, ok := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, errors.New("the client has no serializer for JSON")
	}
	return func(data []byte) (int, error) {
		into := &unstructured.UnstructuredList{}
		_, _, err := info.Serializer.Decode(data, nil, into)
		return len(into.Items), err
	}, nil
}

// packingDecoder returns the decoder of packed caches. It validates the JSON and extracts the identity of the
// object. The rest stays JSON, without the fields that caches prune by default.
func packingDecoder() (decoder, error) {
	pruner, err := packed.NewPruner(packed.Prune{ManagedFields: true, LastApplied: true})
	check(err)
	packer := packed.NewPacker(pruner)
	return decoder{
		object: func(data []byte) error {
			_, err := packer.Pack(data)
			return err
		},
		list: func(data []byte) (int, error) {
			list, err := codec.ReadList(bytes.NewReader(data), packer)
			if err != nil {
				return 0, err
			}
			return len(list.Items), nil
		},
	}, nil
}

// decodeObjects measures the decoding of single objects and of a list.
func decodeObjects(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	list, items := fetchSamples(ctx, task)
	d, err := newDecoder(task.Subject)
	check(err)
	singleCost := averageCost(task.Budget, func(n int) error { return d.object(items[n%len(items)]) })
	listCost := averageCost(2*task.Budget, func(int) error {
		got, err := d.list(list)
		if err == nil && got != len(items) {
			err = fmt.Errorf("%d items were decoded, want %d", got, len(items))
		}
		return err
	})
	return Outcome{Metrics: map[string]float64{
		DecodeObject: singleCost,
		DecodeList:   listCost / float64(len(items)),
	}}, nil
}
