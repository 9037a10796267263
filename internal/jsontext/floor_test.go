package jsontext_test

import "testing"

// BenchmarkFloor is BenchmarkRatio for building the same maps from parsed values: a lower bound for any
// decoder.
func BenchmarkFloor(b *testing.B) {
	const round = 200
	for _, size := range sizes {
		documents := documents(round, size.make)
		object, err := reference(documents[0])
		if err != nil {
			b.Fatal(err)
		}
		parsed := flatten(object)
		rebuild := func([]byte) (map[string]any, error) { return build(parsed).(map[string]any), nil }
		b.Run(size.name, func(b *testing.B) {
			var theirs, ours int64
			for b.Loop() {
				theirs += cost(b, reference, documents)
				ours += cost(b, rebuild, documents)
			}
			b.ReportMetric(float64(theirs)/float64(ours), "times")
			b.ReportMetric(float64(ours)/float64(b.N*round), "cpu-ns/object")
		})
	}
}

// parts is an object, or without keys an array, as a list.
type parts struct {
	keys   []string
	values []any // scalars, and *parts
	object bool
}

func flatten(value any) any {
	switch value := value.(type) {
	case map[string]any:
		p := &parts{object: true}
		for key, v := range value {
			p.keys, p.values = append(p.keys, key), append(p.values, flatten(v))
		}
		return p
	case []any:
		p := &parts{}
		for _, v := range value {
			p.values = append(p.values, flatten(v))
		}
		return p
	}
	return value
}

func build(value any) any {
	p, ok := value.(*parts)
	if !ok {
		return value
	}
	if !p.object {
		array := make([]any, len(p.values))
		for i, v := range p.values {
			array[i] = build(v)
		}
		return array
	}
	object := make(map[string]any, len(p.keys))
	for i, key := range p.keys {
		object[key] = build(p.values[i])
	}
	return object
}
