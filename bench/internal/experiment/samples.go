package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// sampleCount is the number of objects for experiments that measure one operation, such as decoding.
const sampleCount = 500

// samples returns the JSON of a list from the API server, and that of its items.
func samples(ctx context.Context, task Task) (list []byte, items [][]byte, err error) {
	config, err := config(task)
	if err != nil {
		return nil, nil, err
	}
	config = dynamic.ConfigFor(config)
	config.GroupVersion = nil
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	list, err = client.Get().AbsPath("/apis", certificates.Group, certificates.Version,
		certificates.Resource).
		Param("limit", strconv.Itoa(sampleCount)).Do(ctx).Raw()
	if err != nil {
		return nil, nil, err
	}
	var parsed struct{ Items []json.RawMessage }
	if err := json.Unmarshal(list, &parsed); err != nil {
		return nil, nil, err
	}
	if len(parsed.Items) == 0 {
		return nil, nil, fmt.Errorf("there are no objects")
	}
	for _, item := range parsed.Items {
		items = append(items, item)
	}
	return list, items, nil
}
