package experiment

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/bench/internal/child"
	"github.com/crdcache/crdcache/bench/internal/measure"
	"github.com/crdcache/crdcache/internal/codec"
	"github.com/crdcache/crdcache/internal/codec/decode"
)

// decodeObjects measures decoding of single objects, and of a list as the dynamic client decodes it.
func decodeObjects(ctx context.Context, task child.Task, _ func() error) (child.Outcome, error) {
	list, items, err := samples(ctx, task)
	if err != nil {
		return child.Outcome{}, err
	}
	object, serializer, err := decoders(task.Subject)
	if err != nil {
		return child.Outcome{}, err
	}
	one, err := measure.Operation(task.Budget, func(n int) error { return object(items[n%len(items)]) })
	if err != nil {
		return child.Outcome{}, err
	}
	all, err := measure.Operation(2*task.Budget, func(int) error {
		into := &unstructured.UnstructuredList{}
		if _, _, err := serializer.Decode(list, nil, into); err != nil {
			return err
		}
		if len(into.Items) != len(items) {
			return fmt.Errorf("%d items were decoded, want %d", len(into.Items), len(items))
		}
		return nil
	})
	if err != nil {
		return child.Outcome{}, err
	}
	count := float64(len(items))
	return child.Outcome{Metrics: map[string]float64{
		DecodeObject:       one.CPU,
		DecodeObjectAllocs: one.Allocations,
		DecodeList:         all.CPU / count,
		DecodeListAllocs:   all.Allocations / count,
	}}, nil
}

// decoders returns the two decoders of a subject.
func decoders(name string) (object func([]byte) error, list runtime.Serializer, err error) {
	stock := dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	if name == Stock {
		serializer, err := jsonSerializer(stock)
		return func(data []byte) error {
			_, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
			return err
		}, serializer, err
	}
	serializer, err := jsonSerializer(codec.Wrap(stock, codec.Options{}))
	decoder := decode.New(decode.Options{})
	return func(data []byte) error {
		_, err := decoder.Decode(data)
		return err
	}, serializer, err
}

func jsonSerializer(s runtime.NegotiatedSerializer) (runtime.Serializer, error) {
	info, ok := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, errors.New("the client has no serializer for JSON")
	}
	return info.Serializer, nil
}
