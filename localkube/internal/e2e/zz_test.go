package e2e

import (
	"fmt"
	"os"
	"sort"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestZZ(t *testing.T) {
	r := &running{t: t, dir: os.Getenv("ZZ_DIR")}
	api := r.client()
	createNamespace(t, api, fmt.Sprintf("zz-%d", time.Now().Unix()))
	var mu sync.Mutex
	var lat []time.Duration
	var wg sync.WaitGroup
	began := time.Now()
	for w := range 32 {
		wg.Go(func() {
			for i := range 100 {
				b := time.Now()
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("zz-%d-%d-%d", began.UnixNano(), w, i)}, Data: map[string]string{"k": "v"}}
				if _, err := api.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				lat = append(lat, time.Since(b))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	sort.Slice(lat, func(i, j int) bool { return lat[i] < lat[j] })
	t.Logf("%d in %s: %.0f/s p50 %s p99 %s", len(lat), time.Since(began), float64(len(lat))/time.Since(began).Seconds(), lat[len(lat)/2], lat[len(lat)*99/100])
	lat = nil
	for i := range 200 {
		b := time.Now()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("yy-%d-%d", began.UnixNano(), i)}}
		if _, err := api.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		lat = append(lat, time.Since(b))
	}
	sort.Slice(lat, func(i, j int) bool { return lat[i] < lat[j] })
	t.Logf("sequential p50 %s p99 %s", lat[100], lat[197])
}
