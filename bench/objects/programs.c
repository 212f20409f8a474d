/* Programs of eBPF that are measured at events of a recorded program. Each keeps no event. */
typedef unsigned char __u8;
typedef unsigned int __u32;
typedef unsigned long long __u64;
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
char _license[] SEC("license") = "Dual MIT/GPL";

struct hit {
    __u64 key;
    __u32 bytes;
    const char *name;
} __attribute__((preserve_access_index));

#if defined(FILTER)
/* Two comparisons. */
SEC("kymo.filter/bench:hit") int program(struct hit *event) { return event->key == 77 && event->bytes > 5000; }
#elif defined(ARRAY)
/* A number of the run's CPU. */
struct { __uint(type, 6); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); } counts SEC(".maps");
SEC("kymo.filter/bench:hit") int program(struct hit *event)
{
    __u32 first = 0;
    __u64 *count = bpf_map_lookup_elem(&counts, &first);
    if (count) *count += event->bytes;
    return 0;
}
#elif defined(HASH)
/* Events, and bytes, of each key. */
struct totals { __u64 events, bytes; };
struct { __uint(type, 1); __uint(max_entries, 256); __type(key, __u64); __type(value, struct totals); } counts SEC(".maps");
SEC("kymo.filter/bench:hit") int program(struct hit *event)
{
    __u64 key = event->key;
    struct totals *totals = bpf_map_lookup_elem(&counts, &key);
    if (!totals) {
        struct totals first = {1, event->bytes};
        bpf_map_update_elem(&counts, &key, &first, 1);
        return 0;
    }
    __sync_fetch_and_add(&totals->events, 1);
    __sync_fetch_and_add(&totals->bytes, event->bytes);
    return 0;
}
#else
/* Loops over the bytes of a text. */
SEC("kymo.filter/bench:hit") int program(struct hit *event)
{
    const char *name = event->name;
    __u32 hash = 5381;
    for (int at = 0; at < 64 && name[at]; ++at) hash = hash * 33 + name[at];
    return hash == 0;
}
#endif
