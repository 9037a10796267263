package storage_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// compressions are the compressions with dictionaries by name.
var compressions = map[string]dynamicinformer.Compression{"s2": s2.New()}

func train(t testing.TB, compression dynamicinformer.Compression,
	samples [][]byte) dynamicinformer.Compressor {
	t.Helper()
	c, err := compression.Train(samples)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCompressor tests the requirements of dynamicinformer.Compression, which every implementation must meet.
func TestCompressor(t *testing.T) {
	for name, c := range compressions {
		t.Run(name, func(t *testing.T) {
			t.Run("dictionaries pay", func(t *testing.T) { dictionariesPay(t, c) })
			t.Run("round trips", func(t *testing.T) { roundTrips(t, c) })
			t.Run("needs samples", func(t *testing.T) { needsSamples(t, c) })
			t.Run("concurrent use", func(t *testing.T) { concurrentUse(t, c) })
			t.Run("damage", func(t *testing.T) { damage(t, c) })
		})
	}
}

// dictionariesPay checks that a dictionary reduces an object to at most a sixth.
func dictionariesPay(t *testing.T, compression dynamicinformer.Compression) {
	object := certificate(5000)
	small := train(t, compression, certificates(0, 200)).Compress(nil, object)
	if len(small) > len(object)/6 {
		t.Errorf("%d bytes are compressed to %d, want at most a sixth", len(object), len(small))
	}
}

// roundTrips trains with various samples, and compresses and decompresses similar and different objects.
func roundTrips(t *testing.T, compression dynamicinformer.Compression) {
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
		"large": bytes.Repeat(certificate(7), 1000), "noise after": append(bytes.Repeat(certificate(8), 60),
			noise(70_000)...),
	}
	for training, samples := range trainings {
		c := train(t, compression, samples)
		for name, object := range objects {
			prefix := []byte("before")
			small := c.Compress(bytes.Clone(prefix), object)
			if !bytes.HasPrefix(small, prefix) {
				t.Fatalf("%s, %s: the prefix was overwritten", training, name)
			}
			back, err := c.Decompress(bytes.Clone(prefix), small[len(prefix):])
			if err != nil || !bytes.Equal(back, append(prefix, object...)) {
				t.Errorf("%s, %s: the round trip returned another object (%d bytes, %v)", training, name,
					len(back), err)
			}
		}
	}
}

func needsSamples(t *testing.T, compression dynamicinformer.Compression) {
	for _, samples := range [][][]byte{nil, {}, {nil, {}}} {
		if c, err := compression.Train(samples); err == nil || c != nil {
			t.Errorf("Train() without samples = %v, %v, want an error", c, err)
		}
	}
}

func concurrentUse(t *testing.T, compression dynamicinformer.Compression) {
	c := train(t, compression, certificates(0, 200))
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for n := range 50 {
				object := certificate(worker*1000 + n)
				back, err := c.Decompress(nil, c.Compress(nil, object))
				if err != nil || !bytes.Equal(back, object) {
					t.Errorf("the round trip of object %d returned %q, %v", n, back, err)
				}
			}
		})
	}
	group.Wait()
}

// damage checks that decompressing a truncated object fails, and that no damaged object causes a panic.
func damage(t *testing.T, compression dynamicinformer.Compression) {
	c := train(t, compression, certificates(0, 200))
	small := c.Compress(nil, certificate(1000))
	for name, data := range map[string][]byte{"cut": small[:len(small)/2], "empty": {},
		"letter": []byte("x")} {
		if back, err := c.Decompress(nil, data); err == nil && len(data) > 0 {
			t.Errorf("%s: %d bytes, want an error", name, len(back))
		}
	}
	for at := range small {
		for _, changed := range []byte{0, 0x7f, 0xff, small[at] ^ 1} {
			data := bytes.Clone(small)
			data[at] = changed
			_, _ = c.Decompress(nil, data)
		}
	}
}

func FuzzS2(f *testing.F) { fuzzRoundTrip(f, compressions["s2"]) }

// fuzzRoundTrip compresses any object with a dictionary of any samples, and decompresses any data.
func fuzzRoundTrip(f *testing.F, compression dynamicinformer.Compression) {
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
		c := train(t, compression, samples)
		back, err := c.Decompress(nil, c.Compress(nil, object))
		if err != nil || !bytes.Equal(back, object) {
			t.Errorf("the round trip of %q returned %q, %v", object, back, err)
		}
		_, _ = c.Decompress(nil, object)
	})
}

// certificate returns a custom resource of about 1.2 KB without managed fields, as an API server sends it.
func certificate(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	uid := fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.Uint32N(1<<16), r.Uint32N(1<<12),
		r.Uint32N(1<<12), r.Uint64N(1<<48))
	return fmt.Appendf(nil, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"cert-manager.io/issue-temporary-certificate":"true","team":"team-%[2]d"},"creationTimestamp":"2026-11-20T10:%02[3]d:00Z","generation":1,"labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"app-%[2]d","env":"prod"},"name":"certificate-%[1]d","namespace":"tenant-%[2]d","resourceVersion":"%[4]d","uid":"%[5]s"},"spec":{"dnsNames":["host-%[1]d.example.com","www.host-%[1]d.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt"},"privateKey":{"algorithm":"ECDSA","rotationPolicy":"Always","size":256},"renewBefore":"360h0m0s","secretName":"tls-%[1]d","usages":["digital signature","key encipherment"]},"status":{"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[3]d:05Z","message":"Certificate is up to date and has not expired","observedGeneration":1,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2027-02-18T10:%02[3]d:04Z","notBefore":"2026-11-20T10:%02[3]d:04Z","renewalTime":"2027-02-03T10:%02[3]d:04Z","revision":1}}`,
		n, n%50, n%60, 1_000_000+n, uid)
}

// certificates returns count certificates.
func certificates(from, count int) [][]byte {
	objects := make([][]byte, count)
	for n := range objects {
		objects[n] = certificate(from + n)
	}
	return objects
}
