package zstd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

func train(t testing.TB, options Options, samples [][]byte) Compressor {
	t.Helper()
	c, err := New(options).Train(samples)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDictionariesPay: an object shrinks to a fraction of what it would be compressed to alone.
func TestDictionariesPay(t *testing.T) {
	object := certificate(5000)
	for name, options := range map[string]Options{"default": {}, "better": {Level: LevelBetter}, "small": {DictionarySize: 4 << 10}} {
		small := train(t, options, certificates(0, 200)).Compress(nil, object)
		if len(small) > len(object)/6 {
			t.Errorf("%s: %d bytes become %d", name, len(object), len(small))
		}
	}
}

// TestRoundTrips trains with samples of many kinds, good for a dictionary or not, and compresses what is like them
// and what is not.
func TestRoundTrips(t *testing.T) {
	noise := func(size int) []byte {
		r := rand.New(rand.NewPCG(uint64(size), 1))
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		return data
	}
	trainings := map[string][][]byte{
		"many":      certificates(0, 200),
		"few":       certificates(0, 3),
		"one":       certificates(0, 1),
		"tiny":      {[]byte("{}")},
		"same":      bytes.SplitN(bytes.Repeat([]byte(`{"a":1},`), 200), []byte(","), 200),
		"with none": {nil, []byte(`{"a":"b"}`), nil},
		"noise":     {noise(100), noise(5000), noise(70000)},
		"large":     {bytes.Repeat(certificate(1), 200), bytes.Repeat(certificate(2), 300)},
	}
	objects := map[string][]byte{
		"like": certificate(1000), "empty": {}, "brace": []byte("{}"), "noise": noise(3000),
		"large": bytes.Repeat(certificate(7), 1000),
	}
	for training, samples := range trainings {
		c := train(t, Options{}, samples)
		for name, object := range objects {
			prefix := []byte("before")
			small := c.Compress(bytes.Clone(prefix), object)
			if !bytes.HasPrefix(small, prefix) {
				t.Fatalf("%s, %s: what was there is gone", training, name)
			}
			back, err := c.Decompress(bytes.Clone(prefix), small[len(prefix):])
			if err != nil || !bytes.Equal(back, append(prefix, object...)) {
				t.Errorf("%s, %s: another object comes back (%d bytes, %v)", training, name, len(back), err)
			}
		}
	}
}

func TestTrainNeedsSamples(t *testing.T) {
	for _, samples := range [][][]byte{nil, {}, {nil, {}}} {
		if c, err := New(Options{}).Train(samples); err == nil || c != nil {
			t.Errorf("training without samples gives %v, %v", c, err)
		}
	}
}

func TestDamageIsReported(t *testing.T) {
	c := train(t, Options{}, certificates(0, 200))
	small := c.Compress(nil, certificate(1000))
	other := train(t, Options{}, certificates(0, 200))
	for name, err := range map[string]error{
		"cut":              second(c.Decompress(nil, small[:len(small)/2])),
		"empty":            second(c.Decompress(nil, []byte("x"))),
		"other dictionary": second(other.Decompress(nil, small)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestConcurrentUse(t *testing.T) {
	c := train(t, Options{}, certificates(0, 200))
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for n := range 50 {
				object := certificate(worker*1000 + n)
				back, err := c.Decompress(nil, c.Compress(nil, object))
				if err != nil || !bytes.Equal(back, object) {
					t.Errorf("object %d comes back as %q, %v", n, back, err)
				}
			}
		})
	}
	group.Wait()
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte(`{"a":1}`), []byte(`{"a":2}`), 200)
	f.Add([]byte(""), []byte("{}"), 1)
	f.Add(certificate(1), certificate(2), 9)
	f.Fuzz(func(t *testing.T, sample, object []byte, count int) {
		if len(sample) == 0 {
			sample = []byte("{}")
		}
		samples := make([][]byte, 1+min(max(count, 0), 300))
		for n := range samples {
			samples[n] = append(bytes.Clone(sample), fmt.Sprint(n)...)
		}
		c := train(t, Options{}, samples)
		back, err := c.Decompress(nil, c.Compress(nil, object))
		if err != nil || !bytes.Equal(back, object) {
			t.Errorf("%q comes back as %q, %v", object, back, err)
		}
	})
}
