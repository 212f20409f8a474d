/*
 * Threads look for words: events in a namespace, with texts of C++, scopes that end where blocks do, and an id that goes from who asks to
 * who answers.
 *
 *     make -C examples/cpp && kymo record -- examples/cpp/words
 *     kymo print kymo-traces/words-*
 *     kymo pairs kymo-traces/words-*
 */
#include <kymo/kymo.h>

#include <future>
#include <string>
#include <string_view>
#include <vector>

namespace words {

KYMO_EVENT_AT(info, words, asked, KYMO_U32(id), KYMO_TEXT(word));
KYMO_EVENT_AT(info, words, found, KYMO_U32(id), KYMO_TEXT(word), KYMO_SEQUENCE(u32, places));

std::vector<uint32_t> find(uint32_t id, const std::string &text, std::string_view word)
{
    KYMO_SCOPE("find");
    KYMO_RECEIVE(id);
    std::vector<uint32_t> places;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
        places.push_back(static_cast<uint32_t>(at));
    kymo_words_found(id, word, places.data(), places.size());
    return places;
}

} // namespace words

int main()
{
    const std::vector<std::string> all = {"wave", "drum", "line", "no such word"};
    std::string text;
    for (int line = 0; line < 2000; ++line)
        text += "a line on the drum: wave " + std::to_string(line) + "\n";
    size_t places = 0;
    for (uint32_t round = 0; round < 50; ++round) {
        KYMO_SCOPE("round");
        std::vector<std::future<std::vector<uint32_t>>> answers;
        for (uint32_t number = 0; number < all.size(); ++number) {
            const auto id = static_cast<uint32_t>(round * all.size() + number);
            words::kymo_words_asked(id, all[number]);
            KYMO_SEND(id);
            answers.push_back(std::async(std::launch::async, words::find, id, std::cref(text), all[number]));
        }
        for (auto &answer : answers)
            places += answer.get().size();
    }
    return places == 50 * 6000 ? 0 : 1;
}
