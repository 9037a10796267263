package experiment

// Calls calls f exactly count times, without trying it out before. f gets the number of the call.
func Calls(count int, f func(n int) error) (Cost, error) {
	bytes, objects := Allocated()
	before, err := ProcessCPU()
	if err != nil {
		return Cost{}, err
	}
	for n := range count {
		if err := f(n); err != nil {
			return Cost{}, err
		}
	}
	after, err := ProcessCPU()
	if err != nil {
		return Cost{}, err
	}
	bytesAfter, objectsAfter := Allocated()
	return Cost{
		CPU:         float64(after-before) / float64(count),
		Allocations: float64(objectsAfter-objects) / float64(count),
		Bytes:       float64(bytesAfter-bytes) / float64(count),
	}, nil
}
