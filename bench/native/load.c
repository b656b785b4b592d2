/* A client that costs little, for measuring what stands between it and an upstream. Prints one JSON object.
 *
 *     load -a HOST:PORT [-b HOST:PORT -k BLOCK] -f BODY [-p PATH] [-H 'Name: value']...
 *          -n SLOTS (-t SECONDS | -r REQUESTS) [-s SPREAD_US] [-e EVENTS]
 *
 * Each slot is one kept connection that asks, reads the whole answer and asks again. With -b there is one slot, and
 * blocks of BLOCK requests go to the two addresses in turn, so that noise falls on both; figures are printed for each.
 * -s starts the slots spread evenly over so much time, so that streams do not march in step. -e: answers are streams of
 * so many events with content, then [DONE]; anything else is bad. After -t, what is under way may end within 15 s.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 16384, LINE_MAX_BYTES = 8192, GRACE_S = 15 };

typedef struct {
    uint32_t *us10; /* tenths of microseconds */
    size_t count, room;
} Samples;

static void sample(Samples *s, uint64_t ns) {
    if (s->count == s->room) s->us10 = realloc(s->us10, (s->room = s->room ? s->room * 2 : 4096) * sizeof *s->us10);
    s->us10[s->count++] = ns / 100 > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / 100);
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void print_samples(const char *name, Samples *s) {
    qsort(s->us10, s->count, sizeof *s->us10, by_size);
    double p50 = s->count ? s->us10[s->count / 2] / 10.0 : 0;
    double p99 = s->count ? s->us10[s->count * 99 / 100] / 10.0 : 0;
    printf("\"%s\":{\"count\":%zu,\"p50Us\":%.1f,\"p99Us\":%.1f}", name, s->count, p50, p99);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- what is sent ---- */

static const char *address[2], *path = "/v1/chat/completions", *body_file;
static char headers[8192], *request[2];
static size_t request_bytes[2];
static int slots = 1, ways = 1, expected_events;
static long requests_max = -1, block = 100;
static double seconds = -1, spread_us;

static void make_requests(void) {
    FILE *file = fopen(body_file, "rb");
    static char body[1 << 20];
    if (!file) perror(body_file), exit(2);
    size_t count = fread(body, 1, sizeof body, file);
    fclose(file);
    for (int way = 0; way < ways; way++) {
        request[way] = malloc(count + sizeof headers + 1024);
        int head = sprintf(request[way],
                           "POST %s HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\n%scontent-length: %zu\r\n\r\n",
                           path, address[way], headers, count);
        memcpy(request[way] + head, body, count);
        request_bytes[way] = (size_t)head + count;
    }
}

static int dial(const char *to) {
    char host[64];
    const char *colon = strrchr(to, ':');
    snprintf(host, sizeof host, "%.*s", (int)(colon - to), to);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
    inet_pton(AF_INET, host, &at.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&at, sizeof at)) return close(fd), -1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* ---- what comes back ---- */

typedef enum { HEAD, LENGTH, CHUNK_SIZE, CHUNK, CHUNK_END, TRAILER, TO_CLOSE, WHOLE } State;

typedef struct {
    int fd, way;
    uint64_t asked, starts;
    int fresh; /* nothing of an answer was ever read from this connection */
    State state;
    int status, closes;
    size_t left, held;
    char head[HEAD_MAX];
    char line[LINE_MAX_BYTES];
    size_t line_bytes;
    int events, done;
} Slot;

static Samples latency[2], first[2], age;
static long finished[2], bad, all_events, reads, dials;
static int poll_fd;

static void on_line(Slot *s) {
    s->line[s->line_bytes] = 0;
    if (strncmp(s->line, "data:", 5)) return;
    if (strstr(s->line, "[DONE]")) {
        s->done = 1;
        return;
    }
    char *content = strstr(s->line, "\"content\":");
    if (!content) return;
    for (content += 10; *content == ' ';) content++;
    if (content[0] != '"' || content[1] == '"') return;
    uint64_t now = now_ns();
    if (s->events++ == 0) sample(&first[s->way], now - s->asked);
    all_events++;
    uint64_t written = content[1] == '@' ? strtoull(content + 2, NULL, 10) : 0;
    if (written && written <= now) sample(&age, now - written);
}

static void on_body(Slot *s, const char *bytes, size_t count) {
    if (!expected_events) return;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n') {
            on_line(s);
            s->line_bytes = 0;
        } else if (bytes[i] != '\r' && s->line_bytes < LINE_MAX_BYTES - 1) {
            s->line[s->line_bytes++] = bytes[i];
        }
    }
}

static void read_head(Slot *s) {
    s->head[s->held] = 0;
    s->status = atoi(s->head + 9);
    s->closes = strcasestr(s->head, "\r\nconnection: close") != NULL;
    char *length = strcasestr(s->head, "\r\ncontent-length:");
    if (strcasestr(s->head, "\r\ntransfer-encoding: chunked")) s->state = CHUNK_SIZE;
    else if (length) s->state = (s->left = strtoul(length + 17, NULL, 10)) ? LENGTH : WHOLE;
    else s->state = TO_CLOSE;
    s->held = 0;
}

/* Takes one byte of the framing: head, chunk sizes, line ends, trailers. */
static int on_frame_byte(Slot *s, char byte) {
    if (s->held == HEAD_MAX - 1) return -1;
    s->head[s->held++] = byte;
    if (byte != '\n') return 0;
    if (s->state == HEAD) {
        if (s->held >= 4 && !memcmp(s->head + s->held - 4, "\r\n\r\n", 4)) read_head(s);
        return 0;
    }
    size_t line = s->held;
    s->held = 0;
    if (s->state == CHUNK_END) s->state = CHUNK_SIZE;
    else if (s->state == TRAILER) s->state = line <= 2 ? WHOLE : TRAILER;
    else s->state = (s->left = strtoul(s->head, NULL, 16)) ? CHUNK : TRAILER;
    return 0;
}

static int on_bytes(Slot *s, const char *bytes, size_t count) {
    for (size_t i = 0; i < count && s->state != WHOLE;) {
        if (s->state != LENGTH && s->state != CHUNK && s->state != TO_CLOSE) {
            if (on_frame_byte(s, bytes[i++]) < 0) return -1;
            continue;
        }
        size_t part = count - i;
        if (s->state != TO_CLOSE && part > s->left) part = s->left;
        on_body(s, bytes + i, part);
        i += part;
        if (s->state != TO_CLOSE && (s->left -= part) == 0) s->state = s->state == LENGTH ? WHOLE : CHUNK_END;
    }
    return 0;
}

/* ---- the slots ---- */

static int choose_way(long sent) {
    return ways == 2 ? (int)(sent / block % 2) : 0;
}

static void hang_up(Slot *s) {
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

static void ask(Slot *s) {
    s->state = HEAD;
    s->held = s->line_bytes = 0;
    s->events = s->done = s->status = 0;
    s->asked = now_ns();
    for (int attempt = 0; attempt < 2; attempt++) {
        if (s->fd < 0) {
            s->fd = dial(address[s->way]);
            dials++;
            s->fresh = 1;
            if (s->fd < 0) return;
            epoll_ctl(poll_fd, EPOLL_CTL_ADD, s->fd, &(struct epoll_event){.events = EPOLLIN, .data.ptr = s});
        }
        if (send(s->fd, request[s->way], request_bytes[s->way], MSG_NOSIGNAL) == (ssize_t)request_bytes[s->way]) return;
        hang_up(s); /* closed while it was idle */
    }
}

/* Reads what has come: 1 when the answer has ended, well or not. */
static int take(Slot *s) {
    static char bytes[65536];
    ssize_t count = recv(s->fd, bytes, sizeof bytes, 0);
    if (count < 0 && errno == EAGAIN) return 0;
    reads++;
    if (count <= 0) {
        int unread = s->state == HEAD && s->held == 0 && !s->fresh;
        int whole = count == 0 && s->state == TO_CLOSE;
        hang_up(s);
        if (unread) {
            ask(s); /* the proxy closed an idle connection as we wrote to it: not the request's fault */
            return 0;
        }
        if (!whole) s->status = 0;
        return 1;
    }
    s->fresh = 0;
    if (on_bytes(s, bytes, (size_t)count) < 0) s->status = 0, s->state = WHOLE;
    return s->state == WHOLE;
}

static void settle(Slot *s) {
    uint64_t now = now_ns();
    if (s->status != 200 || (expected_events && (!s->done || s->events != expected_events))) {
        bad++;
        hang_up(s);
    } else {
        sample(&latency[s->way], now - s->asked);
        finished[s->way]++;
        if (s->closes) hang_up(s);
    }
}

static double run(void) {
    Slot *all = calloc((size_t)slots, sizeof *all), *lanes = ways == 2 ? calloc(2, sizeof *lanes) : NULL;
    uint64_t start = now_ns(), stop = seconds > 0 ? start + (uint64_t)(seconds * 1e9) : UINT64_MAX;
    uint64_t hard = stop == UINT64_MAX ? UINT64_MAX : stop + GRACE_S * 1000000000ull;
    long sent = 0;
    int begun = 0, open = 0;
    for (int i = 0; i < slots; i++) all[i].fd = -1, all[i].starts = start + (uint64_t)(spread_us * 1e3 * i / slots);
    for (int i = 0; lanes && i < 2; i++) lanes[i].fd = -1, lanes[i].way = i;
    while (now_ns() < hard) {
        for (; begun < slots && all[begun].starts <= now_ns(); begun++, open++, sent++)
            ask(lanes ? &lanes[choose_way(sent)] : &all[begun]);
        if (begun == slots && open == 0) break;
        struct epoll_event events[256];
        int64_t wait = begun < slots ? (int64_t)(all[begun].starts - now_ns()) : 100000000;
        struct timespec until = {0, wait < 0 ? 0 : wait > 100000000 ? 100000000 : wait};
        int count = epoll_pwait2(poll_fd, events, 256, &until, NULL);
        for (int i = 0; i < count; i++) {
            Slot *s = events[i].data.ptr;
            if (!take(s)) continue;
            settle(s);
            if (now_ns() >= stop || bad > 1000 || (requests_max >= 0 && sent >= requests_max)) {
                open--;
                continue;
            }
            ask(lanes ? &lanes[choose_way(sent)] : s);
            sent++;
        }
    }
    bad += open;
    return (double)(now_ns() - start) / 1e9;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    for (int option; (option = getopt(argc, argv, "a:b:k:f:p:H:n:t:r:s:e:")) != -1;) switch (option) {
        case 'a': address[0] = optarg; break;
        case 'b': address[1] = optarg; ways = 2; break;
        case 'k': block = atol(optarg); break;
        case 'f': body_file = optarg; break;
        case 'p': path = optarg; break;
        case 'H': snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "%s\r\n", optarg); break;
        case 'n': slots = atoi(optarg); break;
        case 't': seconds = atof(optarg); break;
        case 'r': requests_max = atol(optarg); break;
        case 's': spread_us = atof(optarg); break;
        case 'e': expected_events = atoi(optarg); break;
        default: return 2;
        }
    if (!address[0] || !body_file || (seconds < 0 && requests_max < 0) || (ways == 2 && slots != 1)) {
        return fprintf(stderr, "load: -a, -f and one of -t and -r are needed; -b goes with one slot\n"), 2;
    }
    make_requests();
    poll_fd = epoll_create1(0);
    double took = run();
    printf("{\"seconds\":%.4f,\"bad\":%ld,\"events\":%ld,\"reads\":%ld,\"dials\":%ld,", took, bad, all_events, reads, dials);
    print_samples("age", &age);
    for (int way = 0; way < ways; way++) {
        printf(",\"%s\":{\"requests\":%ld,", way ? "b" : "a", finished[way]);
        print_samples("total", &latency[way]);
        printf(",");
        print_samples("first", &first[way]);
        printf("}");
    }
    printf("}\n");
    return 0;
}
